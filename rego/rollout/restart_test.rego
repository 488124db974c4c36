package rampart.rollout_test

import data.rampart.rollout

reconnecting(drainage) := {
	"action": {"kind": "UpdateVersion", "update": "Connection", "buildID": "v1"},
	"versions": [{"buildID": "v1", "drainage": drainage}, {"buildID": "v2"}],
}

restarts(document, config) := {f.msg |
	some f in rollout.hold with input as document with data.rampart.config.rollout.restart as config
	f.rule == "rollout.restart"
}

test_restart if {
	held := {"v1 still has pinned workflows: its workers are not restarted for a changed connection"}
	restarts(reconnecting("Draining"), {"draining": "hold"}) == held
	count(restarts(reconnecting("Draining"), {"draining": "allow"})) == 0
	count(restarts(reconnecting("Drained"), {"draining": "hold"})) == 0
	template := json.patch(reconnecting("Draining"), [{"op": "replace", "path": "/action/update", "value": "Template"}])
	count(restarts(template, {"draining": "hold"})) == 0
}
