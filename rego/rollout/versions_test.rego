package rampart.rollout_test

import data.rampart.rollout

creating(known, limit) := {
	"action": {"kind": "CreateVersion", "buildID": "new", "from": 0, "to": 0, "raises": false, "lowers": false},
	"limits": {"maxVersions": limit},
	"versions": [{"buildID": sprintf("v%d", [i])} | some i in numbers.range(1, known)],
}

test_a_few_versions if {
	rollout.hold == set() with input as creating(3, 75)
	rollout.warn == set() with input as creating(3, 75)
}

test_budget_of_versions if {
	got := rollout.hold with input as creating(3, 75) with data.rampart.config.rollout.versions.max as 3
	got == {{"rule": "rollout.versions", "msg": "there are 3 versions already, of at most 3: v1, v2, v3"}}
	rollout.hold == set() with input as creating(3, 75) with data.rampart.config.rollout.versions.max as 4
}

test_the_version_itself_does_not_count if {
	again := json.patch(creating(3, 75), [{"op": "replace", "path": "/action/buildID", "value": "v2"}])
	rollout.hold == set() with input as again with data.rampart.config.rollout.versions.max as 3
	count(rollout.hold) == 1 with input as again with data.rampart.config.rollout.versions.max as 2
}

test_only_new_versions_are_counted if {
	other := json.patch(creating(3, 75), [{"op": "replace", "path": "/action/kind", "value": "ScaleVersion"}])
	rollout.hold == set() with input as other with data.rampart.config.rollout.versions.max as 0
	rollout.warn == set() with input as other with data.rampart.config.rollout.versions.warnAt as 0
}

test_near_the_limit_of_the_bot if {
	rollout.warn == set() with input as creating(7, 10) with data.rampart.config.rollout.versions.warnAt as 90
	got := rollout.warn with input as creating(8, 10) with data.rampart.config.rollout.versions.warnAt as 90
	got == {{"rule": "rollout.versions", "msg": "it is version 9 of the 10 that the bot allows: v1, v2, v3, v4, v5 and 3 more"}}
}
