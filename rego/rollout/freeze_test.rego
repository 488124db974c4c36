package rampart.rollout_test

import data.rampart.rollout

weekend := {"name": "weekend", "days": ["Sat", "Sun"]}

saturday := time.parse_rfc3339_ns("2026-03-07T12:00:00Z")

frozen(document, windows) := got if {
	got := rollout.deny with input as document
		with data.rampart.config.rollout.freeze.windows as windows
		with time.now_ns as saturday
}

test_frozen if {
	frozen(rolling("Ramp", 0, 5), [weekend]) == {{"rule": "rollout.freeze", "msg": "frozen: weekend (Sat, Sun)", "window": "weekend", "until": "2026-03-09T00:00:00Z"}}
}

# Windows that touch or overlap are one: until is when raising is possible again.
test_windows_that_touch_are_one if {
	friday := {"name": "friday", "days": ["Fri"], "from": "18:00"}
	monday := {"name": "monday", "days": ["Mon"], "to": "09:00"}
	got := rollout.deny with input as rolling("Ramp", 0, 5)
		with data.rampart.config.rollout.freeze.windows as [friday, weekend, monday, {"name": "other", "days": ["Mon"], "to": "12:00", "environments": ["staging"]}]
		with time.now_ns as time.parse_rfc3339_ns("2026-03-06T20:00:00Z")
	got == {{"rule": "rollout.freeze", "msg": "frozen: friday (Fri; 18:00 to 24:00)", "window": "friday", "until": "2026-03-09T09:00:00Z"}}
}

test_span_that_touches_another if {
	release := {"name": "release", "start": "2026-03-07T00:00:00Z", "end": "2026-03-08T12:00:00Z"}
	audit := {"name": "audit", "start": "2026-03-08T13:00:00+01:00", "end": "2026-03-10T00:00:00+01:00"}
	apart := {"name": "apart", "start": "2026-03-08T12:00:01Z", "end": "2026-03-10T00:00:00Z"}
	{f.msg | some f in frozen(rolling("Ramp", 0, 5), [release, audit])} == {"frozen: release (until 2026-03-09T23:00:00Z)"}
	{f.msg | some f in frozen(rolling("Ramp", 0, 5), [release, apart])} == {"frozen: release (until 2026-03-08T12:00:00Z)"}
}

test_off_by_default if {
	rollout.deny == set() with input as rolling("Ramp", 0, 5)
		with time.now_ns as saturday
}

test_another_day if frozen(rolling("Ramp", 0, 5), [{"name": "monday", "days": ["Mon"]}]) == set()

test_freeze_spares_what_lowers if frozen(rolling("Ramp", 25, 5), [weekend]) == set()

test_freeze_spares_other_actions if frozen(rolling("CreateVersion", 0, 0), [weekend]) == set()

updating(what) := {"action": {"kind": "UpdateVersion", "update": what, "buildID": "v1", "lowers": false}}

# Certificates expire during freezes too.
test_freeze_spares_changed_credentials if {
	frozen(updating("Connection"), [weekend]) == set()
	count(frozen(updating("Template"), [weekend])) == 1
}

test_freeze_in_its_scope if {
	frozen(rolling("Ramp", 0, 5), [object.union(weekend, {"environments": ["staging"]})]) == set()
	count(frozen(rolling("Ramp", 0, 5), [object.union(weekend, {"labels": {"tier": "gold"}})])) == 1
}
