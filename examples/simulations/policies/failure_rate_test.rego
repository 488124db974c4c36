package rampart.rollout_test

import data.rampart.rollout

turned_back(completed, failed) if {
	some finding in rollout.rollback with input as {
		"action": {"kind": "Continue", "buildID": "v2"},
		"canary": {"candidate": {"buildID": "v2", "completed": completed, "failed": failed}},
	}
		with data.payments as {"min_samples": 50, "max_failure_rate": 0.05}
	finding.rule == "payments.failures"
}

test_failures_turn_back if turned_back(47, 3)

test_few_failures_do_not if not turned_back(95, 5)

test_few_samples_do_not if not turned_back(0, 49)
