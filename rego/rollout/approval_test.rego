package rampart.rollout_test

import data.rampart.rollout

approval(document, rules) := got if {
	got := rollout.require_approval with input as document
		with data.rampart.config.rollout.approval.rules as rules
}

test_no_approval_by_default if rollout.require_approval == set() with input as rolling("Ramp", 0, 5)

test_approval if {
	approval(rolling("Ramp", 0, 5), [{}]) == {{"rule": "rollout.approval", "msg": "Ramp in prod needs a reviewer"}}
	approval(rolling("Promote", 25, 100), [{"reason": "ask team pay"}]) == {{"rule": "rollout.approval", "msg": "ask team pay"}}
}

test_approval_from_a_percentage if {
	approval(rolling("Ramp", 0, 5), [{"atLeast": 25}]) == set()
	count(approval(rolling("Ramp", 5, 25), [{"atLeast": 25}])) == 1
	count(approval(rolling("Promote", 25, 100), [{"atLeast": 100}])) == 1
}

test_approval_of_listed_actions if {
	approval(rolling("Ramp", 0, 5), [{"actions": ["Promote"]}]) == set()
	count(approval(rolling("CreateVersion", 0, 0), [{"actions": ["CreateVersion"]}])) == 1
}

test_approval_in_its_scope if approval(rolling("Ramp", 0, 5), [{"environments": ["staging"]}]) == set()

test_no_approval_to_lower if approval(rolling("Ramp", 25, 5), [{}]) == set()
