package rampart.rollout

import data.rampart.config.rollout.approval
import data.rampart.library.match

# METADATA
# title: Approval by a reviewer
# description: >-
#   Which actions need a reviewer, by environment, percentage and labels. Taking traffic back needs none. Off until a
#   rule is configured.
# custom:
#   rule: rollout.approval
#   parameters:
#     rules: what needs approval; one that fits is enough
require_approval contains {"rule": "rollout.approval", "msg": msg} if {
	some rule in approval.rules
	input.action.kind in object.get(rule, "actions", ["Ramp", "Promote"])
	not input.action.lowers
	input.action.to >= object.get(rule, "atLeast", 0)
	match.scope(rule)
	msg := object.get(rule, "reason", sprintf("%s in %s needs a reviewer", [input.action.kind, input.environment.name]))
}
