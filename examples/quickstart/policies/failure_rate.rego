# METADATA
# title: A bad build is turned back
# description: Takes traffic back when a quarter or more of the candidate's closed workflows failed.
package rampart.rollout

rollback contains {"rule": "shop.failure_rate", "msg": msg} if {
	input.action.kind == "Continue"
	closed := input.canary.candidate.closed
	closed >= data.shop.min_samples
	failed := input.canary.candidate.failed
	failed / closed >= data.shop.max_failure_rate
	msg := sprintf("%d of %d workflows on %s failed", [failed, closed, input.action.build])
}
