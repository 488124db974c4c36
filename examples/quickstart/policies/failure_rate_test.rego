package rampart.rollout_test

import data.rampart.rollout

candidate(completed, failed) := {"candidate": {
	"buildID": "v2", "known": true, "completed": completed, "failed": failed, "timedOut": 0,
}}

limits := {"min_samples": 8, "max_failure_rate": 0.25}

keep := {"kind": "Continue", "buildID": "v2", "raises": false, "from": 10, "to": 10}

next := {"kind": "Ramp", "buildID": "v2", "raises": true, "from": 10, "to": 50}

rules(findings) := {f.rule | some f in findings}

test_bad_build_is_turned_back if {
	"shop.failure_rate" in rules(rollout.rollback) with input as {"action": keep, "canary": candidate(6, 2)}
		with data.shop as limits
}

test_good_build_stays if {
	not "shop.failure_rate" in rules(rollout.rollback) with input as {"action": keep, "canary": candidate(7, 1)}
		with data.shop as limits
}

test_too_few_samples_hold if {
	"shop.samples" in rules(rollout.hold) with input as {"action": next, "canary": candidate(7, 0)}
		with data.shop as limits
}

test_unknown_counts_hold if {
	"shop.samples" in rules(rollout.hold) with input as {"action": next, "canary": {}}
		with data.shop as limits
}

test_enough_samples_go_on if {
	not "shop.samples" in rules(rollout.hold) with input as {"action": next, "canary": candidate(8, 0)}
		with data.shop as limits
}
