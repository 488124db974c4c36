package rampart.rollout_test

import data.rampart.rollout

judged_input := {
	"action": {"kind": "Continue", "buildID": "v2"},
	"deployment": {"spec": {"rollout": {"analysis": {"maxFailureRate": 0.2}}}},
	"canary": {
		"phase": "Ramp", "enough": true, "worse": false, "aboveCeiling": false, "evidence": 0.1, "bound": 2.5,
		"candidate": {"buildID": "v2", "counted": {"closed": 100, "failed": 9, "rate": 0.09}},
		"current": {"buildID": "v1", "counted": {"closed": 1000, "failed": 10, "rate": 0.01}},
		"stuck": {"candidate": 0, "unresolved": 0},
	},
}

canary_messages(doc) := {f.msg | some f in rollout.rollback with input as doc; f.rule == "rollout.canary"}

canary_with(patches) := json.patch(judged_input, [{"op": "replace", "path": path, "value": value} | some path, value in patches])

test_canary_healthy if {
	count(canary_messages(judged_input)) == 0
}

test_canary_worse if {
	canary_messages(canary_with({"/canary/worse": true})) == {"9 of 100 workflows of v2 failed, 10 of 1000 of v1"}
	canary_messages(canary_with({"/canary/worse": true, "/canary/phase": "Bake"})) != set()
}

test_canary_evidence_is_kept if {
	some f in rollout.rollback with input as canary_with({"/canary/worse": true})
	f.candidate == {"closed": 100, "failed": 9, "rate": 0.09}
	f.current == {"closed": 1000, "failed": 10, "rate": 0.01}
	f.evidence == 0.1
}

test_canary_ceiling_of_the_spec if {
	canary_messages(canary_with({"/canary/aboveCeiling": true})) == {"9 of 100 workflows of v2 failed, which is more than analysis.maxFailureRate (0.2)"}
}

test_canary_ceiling_of_the_configuration if {
	got := canary_messages(judged_input) with data.rampart.config.rollout.canary.maxFailureRate as 0.05
	got == {"9 of 100 workflows of v2 failed, which is more than 5%"}
	few := canary_messages(canary_with({"/canary/enough": false})) with data.rampart.config.rollout.canary.maxFailureRate as 0.05
	count(few) == 0
}

test_canary_without_anything_to_compare_with if {
	alone := json.remove(canary_with({"/canary/aboveCeiling": true}), ["/canary/current"])
	some f in rollout.rollback with input as alone
	f.rule == "rollout.canary"
	worse := json.remove(canary_with({"/canary/worse": true}), ["/canary/current/counted"])
	count(canary_messages(worse)) == 0
}

test_canary_stuck if {
	stuck := json.patch(canary_with({"/canary/stuck/candidate": 2}), [{"op": "add", "path": "/canary/stuck/workflow", "value": "order-7"}])
	canary_messages(stuck) == {"2 workflows are stuck on v2: their workflow task fails again and again, such as order-7"}
	tolerated := canary_messages(stuck) with data.rampart.config.rollout.canary.maxStuck as 2
	count(tolerated) == 0
	any_number := canary_messages(stuck) with data.rampart.config.rollout.canary.maxStuck as -1
	count(any_number) == 0
}

test_canary_is_about_the_candidate_while_it_is_judged if {
	count(canary_messages(canary_with({"/canary/worse": true, "/action/buildID": "v1"}))) == 0
	count(canary_messages(canary_with({"/canary/worse": true, "/action/kind": "Ramp"}))) == 0
	count(canary_messages(canary_with({"/canary/worse": true, "/canary/phase": "Window"}))) == 0
	in_window := canary_messages(canary_with({"/canary/worse": true, "/canary/phase": "Window"})) with data.rampart.config.rollout.canary.phases as ["Window"]
	count(in_window) == 1
}

next_step := object.union(judged_input, {"action": {"kind": "Ramp", "from": 5, "to": 25, "raises": true, "lowers": false}})

samples_wanted(document, n) := {f.msg | some f in found; f.rule == "rollout.canary"} if {
	found := rollout.hold with input as document with data.rampart.config.rollout.canary.minSamples as n
}

test_canary_samples_of_every_spec if {
	samples_wanted(next_step, 0) == set()
	samples_wanted(next_step, 100) == set()
	samples_wanted(next_step, 101) == {"fewer than 101 workflows of v2 are known to have closed since the ramp changed"}
}

test_canary_samples_that_are_not_known if {
	samples_wanted(json.remove(next_step, ["/canary/candidate/counted"]), 1) != set()
	samples_wanted(json.remove(next_step, ["/canary/candidate/counted"]), 0) == set()
	samples_wanted(object.union(next_step, {"canary": {"candidate": {"buildID": "v3"}}}), 1) != set()
}

test_canary_samples_are_for_more_traffic if {
	samples_wanted(object.union(next_step, {"action": {"from": 0}}), 1000) == set()
	samples_wanted(object.union(next_step, {"action": {"raises": false}}), 1000) == set()
}
