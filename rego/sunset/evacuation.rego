package rampart.sunset

import data.rampart.config.sunset.evacuation
import data.rampart.library.match

# METADATA
# title: Where workflows are evacuated
# description: >-
#   In the environments listed nothing is done about workflows that stay on old versions, whatever specs say. Off until
#   one is listed.
# custom:
#   rule: sunset.evacuation
#   parameters:
#     offEnvironments: environments (patterns) in which nothing is evacuated
deny contains {"rule": "sunset.evacuation", "msg": msg} if {
	input.action.evacuation
	match.environment(evacuation.offEnvironments)
	msg := sprintf("nothing is evacuated in %s", [input.environment.name])
}

# METADATA
# title: How many workflows are evacuated unasked
# description: >-
#   A stage that is about more open workflows than this wants a person's approval. Moving and terminating want it
#   anyway. Off until a number is set.
# custom:
#   rule: sunset.evacuation
#   parameters:
#     maxWorkflows: the most that are signaled or canceled unasked; -1 for any number
require_approval contains {"rule": "sunset.evacuation", "msg": msg} if {
	evacuation.maxWorkflows >= 0
	input.action.evacuation.count > evacuation.maxWorkflows
	msg := sprintf("%d workflows stay on %s, more than %d", [
		input.action.evacuation.count,
		input.action.buildID,
		evacuation.maxWorkflows,
	])
}
