package rampart.rollout_test

import data.rampart.rollout

latency(value, fresh) := {"latency": {"value": value, "fresh": fresh}}

raising := {"action": {"kind": "Ramp", "buildID": "v2", "from": 10, "to": 50, "raises": true}}

going_on := {"action": {"kind": "Continue", "buildID": "v2"}, "canary": {"phase": "Ramp", "candidate": {"buildID": "v2"}}}

limits(extra) := [object.union({"metric": "latency", "max": 2, "min": 0.5}, extra)]

held_by(doc, thresholds) := {f.msg |
	some f in rollout.hold with input as doc with data.rampart.config.rollout.metrics.thresholds as thresholds
	f.rule == "rollout.metrics"
}

back_by(doc, thresholds) := {f.msg |
	some f in rollout.rollback with input as doc with data.rampart.config.rollout.metrics.thresholds as thresholds
	f.rule == "rollout.metrics"
}

test_metrics_hold if {
	held_by(object.union(raising, {"facts": latency(3, true)}), limits({})) == {"latency is 3, more than 2"}
	held_by(object.union(raising, {"facts": latency(0.1, true)}), limits({})) == {"latency is 0.1, less than 0.5"}
	count(held_by(object.union(raising, {"facts": latency(1, true)}), limits({}))) == 0
	count(held_by(object.union(raising, {"facts": latency(3, true)}), [])) == 0
	first := json.patch(object.union(raising, {"facts": latency(3, true)}), [{"op": "replace", "path": "/action/from", "value": 0}])
	count(held_by(first, limits({}))) == 0
}

test_metrics_rollback if {
	going := object.union(going_on, {"facts": latency(3, true)})
	back_by(going, limits({"onBreach": "rollback"})) == {"latency is 3, more than 2"}
	count(back_by(going, limits({}))) == 0
	count(held_by(object.union(raising, {"facts": latency(3, true)}), limits({"onBreach": "rollback"}))) == 0
}

test_metrics_stale_turns_nothing_back if {
	count(back_by(object.union(going_on, {"facts": latency(3, false)}), limits({"onBreach": "rollback"}))) == 0
	count(held_by(object.union(raising, {"facts": latency(3, false)}), limits({}))) == 0
}

test_metrics_scope if {
	doc := object.union(raising, {"facts": latency(3, true), "environment": {"name": "prod"}})
	count(held_by(doc, limits({"environments": ["dev"]}))) == 0
	count(held_by(doc, limits({"environments": ["pr*"]}))) == 1
}
