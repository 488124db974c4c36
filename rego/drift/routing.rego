package rampart.drift

import data.rampart.config.drift.routing

# METADATA
# title: Somebody moved the routing
# description: >-
#   What gives less traffic than was desired is adopted, since drift never raises; what gives more is reverted.
# custom:
#   rule: drift.routing
#   parameters:
#     lower: adopt or hold, when traffic is lower than desired
#     higher: revert, adopt or hold, when traffic is higher than desired
action contains {"rule": "drift.routing", "msg": "traffic is lower than desired", "action": routing.lower} if {
	input.action.drift.kind == "Routing"
	input.action.drift.direction == "Lower"
}

action contains {"rule": "drift.routing", "msg": "traffic is higher than desired", "action": routing.higher} if {
	input.action.drift.kind == "Routing"
	not input.action.drift.direction == "Lower"
}
