package rampart.drift_test

import data.rampart.drift

answers(d) := got if {
	found := drift.action with input as {"action": {"kind": "Drift", "drift": d}}
	got := {[f.rule, f.action] | some f in found}
}

test_lower_is_adopted if answers({"kind": "Routing", "direction": "Lower"}) == {["drift.routing", "adopt"]}

test_higher_is_reverted if answers({"kind": "Routing", "direction": "Higher"}) == {["drift.routing", "revert"]}

test_no_direction_counts_as_higher if answers({"kind": "Routing"}) == {["drift.routing", "revert"]}

test_manifest_is_reverted if {
	answers({"kind": "Manifest", "path": "versions/v1/deployment.yaml"}) == {["drift.manifest", "revert"]}
}

test_each_kind_has_its_own_answer if {
	answers({"kind": "Routing", "direction": "Lower", "path": "x"}) == {["drift.routing", "adopt"]}
	answers({"kind": "Manifest", "direction": "Lower", "path": "x"}) == {["drift.manifest", "revert"]}
}

test_configured if {
	got := drift.action with input as {"action": {"kind": "Drift", "drift": {"kind": "Routing", "direction": "Lower"}}}
		with data.rampart.config.drift.routing.lower as "hold"
	{f.action | some f in got} == {"hold"}
}
