package rampart.rollout_test

import data.rampart.rollout

waiting(seconds, from) := {
	"action": {"kind": "Ramp", "buildID": "v2", "from": from, "to": 50, "raises": true},
	"versions": [
		{"buildID": "v1", "queues": [{"name": "orders", "type": "Workflow", "backlog": {"ageSeconds": 9999}}]},
		{"buildID": "v2", "queues": [{"name": "orders", "type": "Workflow"}, {"name": "orders", "type": "Activity", "backlog": {"ageSeconds": seconds}}]},
	],
}

backed_up(document) := {f.msg | some f in rollout.hold with input as document; f.rule == "rollout.backlog"}

test_backlog if {
	backed_up(waiting(301, 10)) == {"tasks of v2 wait for more than 5m on its activity task queue orders"}
	count(backed_up(waiting(300, 10))) == 0
	count(backed_up(waiting(301, 0))) == 0
	off := backed_up(waiting(301, 10)) with data.rampart.config.rollout.backlog.maxAge as "0s"
	count(off) == 0
}
