package rampart.spec

import data.rampart.config.spec.safety
import data.rampart.library.match

# METADATA
# title: Safe rollouts where they are asked for
# description: >-
#   A gate, an analysis, a progressive rollout and a small first step where configured; a warning for a progressive
#   rollout that is over too soon to notice anything. That a container sets a variable that Rampart owns, such as
#   TEMPORAL_ADDRESS, is refused before any policy is asked.
# custom:
#   rule: spec.safety
#   parameters:
#     gateEnvironments: patterns of environments in which a gate before any traffic is required
#     analysisEnvironments: patterns of environments in which a progressive rollout needs spec.rollout.analysis
#     progressiveEnvironments: patterns of environments in which the strategy has to be Progressive
#     maxFirstStep: the highest percentage of the first step
#     minTotalPause: warn of a progressive rollout whose pauses add up to less
deny contains {"rule": "spec.safety", "msg": msg} if {
	match.environment(safety.gateEnvironments)
	input.deployment.spec
	not input.deployment.spec.rollout.gate
	msg := sprintf("environment %s asks for a gate before any traffic: set spec.rollout.gate", [input.environment.name])
}

deny contains {"rule": "spec.safety", "msg": msg} if {
	match.environment(safety.analysisEnvironments)
	input.deployment.spec.rollout.strategy == "Progressive"
	not input.deployment.spec.rollout.analysis
	msg := sprintf("environment %s asks for an analysis of a progressive rollout: set spec.rollout.analysis", [
		input.environment.name,
	])
}

deny contains {"rule": "spec.safety", "msg": msg} if {
	match.environment(safety.progressiveEnvironments)
	not input.deployment.spec.rollout.strategy == "Progressive"
	strategy := input.deployment.spec.rollout.strategy
	msg := sprintf("environment %s asks for strategy Progressive, not %s", [input.environment.name, strategy])
}

deny contains {"rule": "spec.safety", "msg": msg} if {
	input.deployment.spec.rollout.strategy == "Progressive"
	first := input.deployment.spec.rollout.steps[0].rampPercentage
	first > safety.maxFirstStep
	msg := sprintf("the first step is %v%%, more than %v%%", [first, safety.maxFirstStep])
}

warn contains {"rule": "spec.safety", "msg": msg} if {
	safety.minTotalPause != "0s"
	input.deployment.spec.rollout.strategy == "Progressive"
	total := sum([time.parse_duration_ns(step.pauseDuration) | some step in input.deployment.spec.rollout.steps])
	total < time.parse_duration_ns(safety.minTotalPause)
	msg := sprintf("the pauses of all steps add up to less than %s", [safety.minTotalPause])
}
