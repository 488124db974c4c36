package rampart.rollout

import data.rampart.config.rollout.versions
import data.rampart.library.budget

# METADATA
# title: A budget of versions
# description: >-
#   Each version has workers of its own until it is no longer needed. A new one waits while there are as many as the
#   budget allows, and there is a warning when the bot's own limit (limits.maxVersions, beyond which nothing is created)
#   comes near: something keeps old versions from going, such as workflows that never end. The budget is off until a
#   number is set.
# custom:
#   rule: rollout.versions
#   parameters:
#     max: how many versions a worker deployment may have, in Git or in Temporal; -1 is as many as the bot's own limit
#     warnAt: warn from this percentage of the bot's own limit on
hold contains {"rule": "rollout.versions", "msg": msg} if {
	input.action.kind == "CreateVersion"
	versions.max >= 0
	count(budget.others) >= versions.max
	msg := sprintf("there are %d versions already, of at most %d: %s", [
		count(budget.others), versions.max, budget.in_words,
	])
}

warn contains {"rule": "rollout.versions", "msg": msg} if {
	input.action.kind == "CreateVersion"
	(count(budget.others) + 1) * 100 >= versions.warnAt * input.limits.maxVersions
	msg := sprintf("it is version %d of the %d that the bot allows: %s", [
		count(budget.others) + 1, input.limits.maxVersions, budget.in_words,
	])
}
