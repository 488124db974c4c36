package rampart.drift

import data.rampart.config.drift.manifest

# METADATA
# title: Somebody edited a version's manifest
# description: >-
#   A file that Rampart rendered is not any more what was written. To revert puts it back, to adopt records it as it is;
#   one that is missing is always put back.
# custom:
#   rule: drift.manifest
#   parameters:
#     answer: revert, adopt or hold
action contains {"rule": "drift.manifest", "msg": msg, "action": manifest.answer} if {
	input.action.drift.kind == "Manifest"
	msg := sprintf("%s was changed by hand", [input.action.drift.path])
}
