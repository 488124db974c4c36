package rampart.spec_test

import data.rampart.spec

progressive(first) := {
	"environment": {"name": "prod"},
	"deployment": {"spec": {"rollout": {
		"strategy": "Progressive",
		"steps": [{"rampPercentage": first, "pauseDuration": "1m"}, {"rampPercentage": 50, "pauseDuration": "30s"}],
	}}},
}

test_nothing_asked_by_default if {
	denied(progressive(90)) == set()
	spec.warn == set() with input as progressive(90)
}

test_gate if {
	got := spec.deny with input as progressive(5)
		with data.rampart.config.spec.safety.gateEnvironments as ["pr*"]
	{f.msg | some f in got} == {"environment prod asks for a gate before any traffic: set spec.rollout.gate"}
	with_gate := object.union(progressive(5), {"deployment": {"spec": {"rollout": {"gate": {"workflowType": "Smoke"}}}}})
	ok := spec.deny with input as with_gate with data.rampart.config.spec.safety.gateEnvironments as ["prod"]
	ok == set()
	no_spec := spec.deny with input as {"environment": {"name": "prod"}, "deployment": {}}
		with data.rampart.config.spec.safety.gateEnvironments as ["prod"]
	no_spec == set()
}

test_progressive if {
	got := spec.deny with input as image("a:1")
		with data.rampart.config.spec.safety.progressiveEnvironments as ["prod"]
	{f.msg | some f in got} == {"environment prod asks for strategy Progressive, not AllAtOnce"}
	ok := spec.deny with input as progressive(5) with data.rampart.config.spec.safety.progressiveEnvironments as ["prod"]
	ok == set()
}

test_first_step if {
	got := spec.deny with input as progressive(30)
		with data.rampart.config.spec.safety.maxFirstStep as 10
	{f.msg | some f in got} == {"the first step is 30%, more than 10%"}
}

test_short_pauses if {
	got := spec.warn with input as progressive(5)
		with data.rampart.config.spec.safety.minTotalPause as "2m"
	{f.msg | some f in got} == {"the pauses of all steps add up to less than 2m"}
	ok := spec.warn with input as progressive(5) with data.rampart.config.spec.safety.minTotalPause as "90s"
	ok == set()
}

test_steps_of_another_strategy_do_not_matter if {
	other := object.union(progressive(30), {"deployment": {"spec": {"rollout": {"strategy": "AllAtOnce"}}}})
	spec.deny == set() with input as other with data.rampart.config.spec.safety.maxFirstStep as 10
	spec.warn == set() with input as other with data.rampart.config.spec.safety.minTotalPause as "2m"
}

test_analysis if {
	got := spec.deny with input as progressive(5)
		with data.rampart.config.spec.safety.analysisEnvironments as ["pr*"]
	{f.msg | some f in got} == {"environment prod asks for an analysis of a progressive rollout: set spec.rollout.analysis"}
	judged := object.union(progressive(5), {"deployment": {"spec": {"rollout": {"analysis": {"minSamples": 50}}}}})
	ok := spec.deny with input as judged with data.rampart.config.spec.safety.analysisEnvironments as ["prod"]
	ok == set()
	elsewhere := spec.deny with input as progressive(5) with data.rampart.config.spec.safety.analysisEnvironments as ["staging"]
	elsewhere == set()
	at_once := spec.deny with input as image("a:1") with data.rampart.config.spec.safety.analysisEnvironments as ["prod"]
	at_once == set()
}
