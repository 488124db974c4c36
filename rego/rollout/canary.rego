package rampart.rollout

import data.rampart.config.rollout.canary
import data.rampart.library.candidate

# METADATA
# title: A candidate that fails is turned back
# description: >-
#   Asked in every cycle about the version with new traffic, while it ramps and while it bakes after its promotion. It
#   is turned back when the sequential test says that it fails more often than the version that it is compared with, or
#   more often than the spec allows at all; when its failure rate is above a ceiling; or when workflow tasks keep
#   failing on it, which no count of closed workflows shows. How many samples a step waits for is in the spec's
#   analysis; minSamples asks for some of every spec.
# custom:
#   rule: rollout.canary
#   parameters:
#     maxFailureRate: a failure rate (0 to 1) above which a candidate with enough samples is turned back; 1 is never
#     maxStuck: how many workflows may be stuck on the candidate; -1 is any number
#     phases: the phases in which a candidate is turned back, of Ramp, Bake and Window (the rollback window)
#     minSamples: >-
#       how many workflows of the candidate have to have closed since the ramp changed before it gets more traffic,
#       however long that takes, and whatever the spec's analysis says
rollback contains {
	"rule": "rollout.canary", "msg": msg,
	"candidate": input.canary.candidate.counted, "current": input.canary.current.counted,
	"evidence": input.canary.evidence, "bound": input.canary.bound,
} if {
	candidate.judged
	input.canary.worse
	msg := sprintf("%v of %v workflows of %s failed, %s", [
		input.canary.candidate.counted.failed, input.canary.candidate.counted.closed, input.action.buildID,
		candidate.compared,
	])
}

rollback contains {"rule": "rollout.canary", "msg": msg, "candidate": input.canary.candidate.counted} if {
	candidate.judged
	input.canary.aboveCeiling
	msg := sprintf("%v of %v workflows of %s failed, which is more than analysis.maxFailureRate (%v)", [
		input.canary.candidate.counted.failed, input.canary.candidate.counted.closed, input.action.buildID,
		input.deployment.spec.rollout.analysis.maxFailureRate,
	])
}

rollback contains {"rule": "rollout.canary", "msg": msg, "candidate": input.canary.candidate.counted} if {
	candidate.judged
	input.canary.enough
	input.canary.candidate.counted.rate > canary.maxFailureRate
	msg := sprintf("%v of %v workflows of %s failed, which is more than %v%%", [
		input.canary.candidate.counted.failed, input.canary.candidate.counted.closed, input.action.buildID,
		canary.maxFailureRate * 100,
	])
}

rollback contains {"rule": "rollout.canary", "msg": msg, "stuck": input.canary.stuck.candidate} if {
	candidate.judged
	canary.maxStuck >= 0
	input.canary.stuck.candidate > canary.maxStuck
	msg := sprintf("%v workflows are stuck on %s: their workflow task fails again and again, such as %s", [
		input.canary.stuck.candidate, input.action.buildID, input.canary.stuck.workflow,
	])
}

hold contains {"rule": "rollout.canary", "msg": msg} if {
	input.action.raises == true
	input.action.from > 0
	canary.minSamples > 0
	not candidate.sampled
	msg := sprintf("fewer than %v workflows of %s are known to have closed since the ramp changed", [
		canary.minSamples, input.action.buildID,
	])
}
