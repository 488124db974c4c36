package rampart.rollout_test

import data.rampart.rollout

rolling(kind, from, to) := {
	"environment": {"name": "prod"},
	"action": {"kind": kind, "buildID": "v2", "from": from, "to": to, "raises": to >= from, "lowers": to < from},
	"routing": {"known": true, "fresh": true, "current": "v1", "hasRamp": from > 0, "ramping": "v2", "percentage": from},
	"deployment": {
		"metadata": {"labels": {"tier": "gold"}},
		"spec": {"rollout": {"strategy": "Progressive", "steps": [
			{"rampPercentage": 5, "pauseDuration": "10m"},
			{"rampPercentage": 25, "pauseDuration": "10m"},
		]}},
	},
}

messages(findings) := {f.msg | some f in findings}

test_next_step if {
	rollout.deny == set() with input as rolling("Ramp", 0, 5)
	rollout.deny == set() with input as rolling("Ramp", 5, 25)
	rollout.deny == set() with input as rolling("Ramp", 5, 7)
}

test_two_steps if {
	got := rollout.deny with input as rolling("Ramp", 0, 25)
	got == {{"rule": "rollout.steps", "ceiling": 5, "msg": "25% is more than one step: from 0% the next step is 5%"}}
}

test_down_is_free if {
	rollout.deny == set() with input as rolling("Ramp", 25, 5)
	rollout.deny == set() with input as rolling("Ramp", 80, 60)
	rollout.deny == set() with input as rolling("Ramp", 80, 60)
		with data.rampart.config.rollout.steps.maxPercentage as 10
}

test_a_promotion_is_no_ramp if {
	rollout.deny == set() with input as rolling("Promote", 25, 100)
		with data.rampart.config.rollout.steps as {"maxPercentage": 50, "maxIncrease": 10}
}

test_keeping_traffic_needs_nothing if {
	keep := json.remove(rolling("Continue", 10, 10), ["/deployment/spec"])
	rollout.deny == set() with input as object.union(keep, {"action": {"raises": false}, "routing": {"fresh": false}})
}

test_promote_after_the_last_step if {
	rollout.deny == set() with input as rolling("Promote", 25, 100)
	got := rollout.deny with input as rolling("Promote", 5, 100)
	messages(got) == {"at 5% the last step is not done"}
}

test_first_version_at_once if {
	first := object.union(rolling("Promote", 0, 100), {"routing": {"current": "", "hasRamp": false}})
	rollout.deny == set() with input as first
}

test_other_strategies_have_no_steps if {
	rollout.deny == set() with input as object.union(rolling("Promote", 0, 100), {"deployment": {"spec": {"rollout": {"strategy": "AllAtOnce"}}}})
}

test_highest_percentage if {
	got := rollout.deny with input as rolling("Ramp", 5, 25)
		with data.rampart.config.rollout.steps.maxPercentage as 10
	messages(got) == {"no ramp goes beyond 10% here"}
}

test_highest_increase if {
	got := rollout.deny with input as rolling("Ramp", 5, 25)
		with data.rampart.config.rollout.steps.maxIncrease as 10
	messages(got) == {"one ramp adds at most 10 percentage points here, not 20"}
}

test_no_fresh_read if {
	got := rollout.deny with input as object.union(rolling("Ramp", 0, 5), {"routing": {"fresh": false}})
	messages(got) == {"Temporal's routing was not read just now"}
}

test_no_spec if {
	got := rollout.deny with input as json.remove(rolling("Ramp", 0, 5), ["/deployment/spec"])
	messages(got) == {"there is no spec to take steps from"}
}
