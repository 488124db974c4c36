package rampart.sunset_test

import data.rampart.sunset

evacuating(count) := {
	"environment": {"name": "prod"},
	"action": {
		"kind": "SignalWorkflows", "buildID": "v1", "removes": false,
		"evacuation": {"stage": "Signal", "count": count},
	},
}

test_evacuation_is_allowed_by_default if {
	sunset.deny == set() with input as evacuating(1000000)
	sunset.require_approval == set() with input as evacuating(1000000)
}

test_evacuation_is_off_in_an_environment if {
	got := sunset.deny with input as evacuating(1) with data.rampart.config.sunset.evacuation.offEnvironments as ["pr*"]
	got == {{"rule": "sunset.evacuation", "msg": "nothing is evacuated in prod"}}
	sunset.deny == set() with input as evacuating(1) with data.rampart.config.sunset.evacuation.offEnvironments as ["dev"]
}

test_off_is_about_evacuation_only if {
	sunset.deny == set() with input as {"environment": {"name": "prod"}, "action": {"kind": "SetAside", "removes": false}}
		with data.rampart.config.sunset.evacuation.offEnvironments as ["*"]
}

test_many_workflows_want_approval if {
	got := sunset.require_approval with input as evacuating(11) with data.rampart.config.sunset.evacuation.maxWorkflows as 10
	got == {{"rule": "sunset.evacuation", "msg": "11 workflows stay on v1, more than 10"}}
	sunset.require_approval == set() with input as evacuating(10) with data.rampart.config.sunset.evacuation.maxWorkflows as 10
	count(sunset.require_approval) == 1 with input as evacuating(1) with data.rampart.config.sunset.evacuation.maxWorkflows as 0
}
