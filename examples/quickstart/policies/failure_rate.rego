# METADATA
# title: A bad build is turned back
# description: |
#   Takes the candidate's traffic back when too many of its workflows failed since the ramp last changed, and raises it
#   no further before enough of them have closed: too little data does not count as success.
package rampart.rollout

# METADATA
# scope: rule
# description: Asked in every cycle about every version that has traffic.
rollback contains {"rule": "shop.failure_rate", "msg": msg, "failed": bad, "closed": closed} if {
	input.action.kind == "Continue"
	input.action.buildID == input.canary.candidate.buildID
	closed := shop_closed
	closed >= data.shop.min_samples
	bad := shop_failed
	bad / closed >= data.shop.max_failure_rate
	msg := sprintf("%d of %d workflows on %s failed", [bad, closed, input.action.buildID])
}

# METADATA
# scope: rule
# description: Asked before a step.
hold contains {"rule": "shop.samples", "msg": msg} if {
	input.action.raises
	input.action.from > 0
	not shop_enough
	msg := sprintf("fewer than %d workflows of %s have closed at this step", [
		data.shop.min_samples, input.action.buildID,
	])
}

shop_enough if {
	input.canary.candidate.known
	shop_closed >= data.shop.min_samples
}

shop_failed := input.canary.candidate.failed + input.canary.candidate.timedOut

shop_closed := input.canary.candidate.completed + shop_failed
