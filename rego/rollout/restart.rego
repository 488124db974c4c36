package rampart.rollout

import data.rampart.config.rollout.restart

# METADATA
# title: Restarting versions with pinned workflows
# description: >-
#   A changed connection is rendered into every version that has workers, which restarts them, a draining version's too:
#   its pinned workflows go on when it is back. Where a restart could hurt them, draining versions keep what they have
#   until they are gone. The target and the current version always follow.
# custom:
#   rule: rollout.restart
#   parameters:
#     draining: allow (the default) or hold
hold contains {"rule": "rollout.restart", "msg": msg} if {
	input.action.kind == "UpdateVersion"
	input.action.update == "Connection"
	restart.draining == "hold"
	some version in input.versions
	version.buildID == input.action.buildID
	version.drainage == "Draining"
	msg := sprintf("%s still has pinned workflows: its workers are not restarted for a changed connection", [
		version.buildID,
	])
}
