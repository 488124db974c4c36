# METADATA
# title: A build whose workflows fail is turned back
package rampart.rollout

# METADATA
# scope: rule
# description: Asked in every cycle about every version that has traffic.
rollback contains {"rule": "payments.failures", "msg": msg} if {
	input.action.kind == "Continue"
	candidate := input.canary.candidate
	input.action.buildID == candidate.buildID
	closed := candidate.completed + candidate.failed
	closed >= data.payments.min_samples
	candidate.failed / closed > data.payments.max_failure_rate
	msg := sprintf("%d of %d workflows on %s failed", [candidate.failed, closed, candidate.buildID])
}
