package rampart.library.progress_test

import data.rampart.library.progress

at(percentage) := {
	"action": {"buildID": "v2"},
	"routing": {"current": "v1", "hasRamp": true, "ramping": "v2", "percentage": percentage},
	"deployment": {"spec": {"rollout": {"steps": [{"rampPercentage": 0.5}, {"rampPercentage": 25}, {"rampPercentage": 50}]}}},
}

test_share if {
	progress.share == 12 with input as at(12)
	progress.share == 0 with input as {"action": {"buildID": "v2"}, "routing": {"current": "v1", "hasRamp": false}}
	progress.share == 0 with input as object.union(at(12), {"routing": {"hasRamp": false}})
	progress.share == 0 with input as object.union(at(12), {"action": {"buildID": "v3"}})
}

test_ceiling_is_the_next_step if {
	progress.ceiling == 0.5 with input as at(0)
	progress.ceiling == 25 with input as at(0.5)
	progress.ceiling == 25 with input as at(24)
	progress.ceiling == 50 with input as at(25)
	progress.ceiling == 50 with input as at(50)
	progress.ceiling == 50 with input as at(80)
}

test_single_precision if {
	thirds := object.union(at(33.333332), {"deployment": {"spec": {"rollout": {"steps": [{"rampPercentage": 33.333333}, {"rampPercentage": 66.666667}]}}}})
	progress.ceiling == 66.666667 with input as thirds
	not progress.done with input as thirds
	progress.done with input as object.union(thirds, {"routing": {"percentage": 66.666664}})
}

test_no_steps_no_ramp if {
	progress.ceiling == 0 with input as object.union(at(0), {"deployment": {"spec": {"rollout": {"steps": []}}}})
	not progress.done with input as object.union(at(99), {"deployment": {"spec": {"rollout": {"steps": []}}}})
}

test_done if {
	not progress.done with input as at(49)
	progress.done with input as at(50)
}

test_first if {
	progress.first with input as {"action": {"buildID": "v1"}, "routing": {"current": "", "hasRamp": false}}
	progress.first with input as object.union(at(10), {"routing": {"current": "", "ramping": "v0"}})
	not progress.first with input as at(10)
	not progress.first with input as object.union(at(10), {"routing": {"current": ""}})
	not progress.first with input as {"action": {"buildID": "v1"}, "routing": {"known": false}}
}
