package rampart.sunset_test

import data.rampart.sunset

test_each_missing_proof_denies if {
	got := sunset.deny with input as {"action": {"kind": "ScaleDown", "buildID": "v1", "removes": true}}
		with data.rampart.library.removal.missing as {"the spec asks for it", "it has a ramp"}
	got == {
		{"rule": "sunset.evidence", "msg": "the spec asks for it"},
		{"rule": "sunset.evidence", "msg": "it has a ramp"},
	}
}

test_setting_aside_removes_nothing if {
	sunset.deny == set() with input as {"action": {"kind": "SetAside", "buildID": "v1", "removes": false}}
		with data.rampart.library.removal.missing as {"the spec asks for it"}
}
