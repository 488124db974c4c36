package rampart.rollout

import data.rampart.config.rollout.concurrency
import data.rampart.library.match
import data.rampart.library.progress

# METADATA
# title: So many rollouts at a time
# description: >-
#   A rollout starts only while fewer than a number of the environment's other worker deployments are rolling out, which
#   is while their records desire a ramp. Those that could start in the same cycle go in the order of their names. What
#   has begun goes on, the first version of a worker deployment does not wait, and lowering traffic is always allowed.
#   Off until a number is set.
# custom:
#   rule: rollout.concurrency
#   parameters:
#     max: how many worker deployments of the environment may roll out at a time; -1 is any number
#     environments: patterns of environments in which the number holds
#     labels: who waits, by the labels of the worker deployment; every rollout of the environment counts
deny contains {"rule": "rollout.concurrency", "msg": msg, "rollouts": input.rollouts.names} if {
	concurrency.max >= 0
	match.scope(concurrency)
	progress.starts
	input.rollouts.count >= concurrency.max
	msg := sprintf("%d of at most %d rollouts at a time are in progress: %s", [
		input.rollouts.count, concurrency.max, progress.in_words(input.rollouts),
	])
}

deny contains {"rule": "rollout.concurrency", "msg": "it is not known which rollouts are in progress"} if {
	concurrency.max >= 0
	match.scope(concurrency)
	progress.starts
	not input.rollouts
}
