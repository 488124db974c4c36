package rampart.rollout_test

import data.rampart.rollout

starting(others) := {
	"environment": {"name": "prod"},
	"rollouts": {"count": count(others), "names": [concat("/", ["shop", name]) | some name in others]},
	"deployment": {
		"metadata": {"labels": {"tier": "gold"}},
		"spec": {"rollout": {"strategy": "Progressive", "steps": [{"rampPercentage": 5}, {"rampPercentage": 50}]}},
	},
	"action": {"kind": "Ramp", "buildID": "v2", "from": 0, "to": 5, "raises": true, "lowers": false},
	"routing": {"known": true, "fresh": true, "current": "v1", "hasRamp": false},
}

waits(document, parameters) if {
	some f in rollout.deny with input as document with data.rampart.config.rollout.concurrency as parameters
	f.rule == "rollout.concurrency"
}

test_any_number_by_default if {
	every f in rollout.deny {
		f.rule != "rollout.concurrency"
	} with input as starting(["a", "b", "c"])
}

test_one_at_a_time if {
	not waits(starting([]), {"max": 1})
	got := rollout.deny with input as starting(["orders"]) with data.rampart.config.rollout.concurrency.max as 1
	got == {{
		"rule": "rollout.concurrency",
		"msg": "1 of at most 1 rollouts at a time are in progress: shop/orders",
		"rollouts": ["shop/orders"],
	}}
}

test_as_many_as_are_allowed if {
	not waits(starting(["a", "b"]), {"max": 3})
	waits(starting(["a", "b", "c"]), {"max": 3})
	waits(starting([]), {"max": 0})
}

test_the_first_few_are_named if {
	got := rollout.deny with input as starting(["a", "b", "c", "d", "e"]) with data.rampart.config.rollout.concurrency.max as 4
	messages(got) == {"5 of at most 4 rollouts at a time are in progress: shop/a, shop/b, shop/c and 2 more"}
}

test_what_has_begun_goes_on if {
	begun := object.union(starting(["orders"]), {
		"action": {"from": 5, "to": 50},
		"routing": {"hasRamp": true, "ramping": "v2", "percentage": 5},
	})
	not waits(begun, {"max": 1})
	waits(object.union(begun, {"routing": {"ramping": "v3"}}), {"max": 1})
}

test_a_promotion_from_nothing_starts if {
	waits(object.union(starting(["orders"]), {"action": {"kind": "Promote", "to": 100}}), {"max": 1})
}

test_the_first_version_waits_for_nobody if {
	not waits(object.union(starting(["orders"]), {"routing": {"current": ""}}), {"max": 1})
	not waits(object.union(starting(["orders"]), {"routing": {"current": "v2"}}), {"max": 1})
}

test_what_is_no_raise_of_a_version_waits_for_nobody if {
	not waits(object.union(starting(["orders"]), {"action": {"kind": "ResetRamp", "raises": false, "lowers": true}}), {"max": 1})
	not waits(object.union(starting(["orders"]), {"action": {"kind": "CreateVersion", "raises": false}}), {"max": 1})
	not waits(object.union(starting(["orders"]), {"action": {"kind": "Ramp", "raises": false, "lowers": true}}), {"max": 1})
	not waits(object.union(starting(["orders"]), {"action": {"kind": "Unroute"}}), {"max": 1})
}

test_scope if {
	waits(starting(["orders"]), {"max": 1, "environments": ["pr*"], "labels": {"tier": "gold"}})
	not waits(starting(["orders"]), {"max": 1, "environments": ["staging"]})
	not waits(starting(["orders"]), {"max": 1, "labels": {"tier": "silver"}})
}

test_unknown_rollouts_wait if {
	got := rollout.deny with input as json.remove(starting([]), ["/rollouts"])
		with data.rampart.config.rollout.concurrency.max as 1
	messages(got) == {"it is not known which rollouts are in progress"}
}
