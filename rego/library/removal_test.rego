package rampart.library.removal_test

import data.rampart.library.removal

routing := {"known": true, "fresh": true, "current": "v2", "hasRamp": true, "ramping": "v3", "percentage": 5}

drained := {
	"buildID": "v1",
	"listed": true,
	"drainage": "Drained",
	"drainageChangedAt": "2026-03-01T12:00:00Z",
	"firstActivatedAt": "2026-02-01T12:00:00Z",
	"openPinned": {"known": true, "n": 0},
	"record": {"guard": "On", "replicas": 2, "createdAt": "2026-02-01T11:00:00Z", "routedAt": "2026-02-01T12:00:00Z"},
}

retired := {
	"queuesKnown": true,
	"queues": [{"name": "q", "pollers": {"known": true, "count": 0}}],
	"record": {"guard": "Off", "replicas": 0},
}

unused := {
	"buildID": "v1",
	"listed": true,
	"openPinned": {"known": true, "n": 0},
	"record": {"guard": "On", "replicas": 2, "createdAt": "2026-03-01T12:00:00Z"},
}

doc(kind, version) := {
	"action": {"kind": kind, "buildID": "v1", "removes": true},
	"routing": routing,
	"versions": [{"buildID": "v2"}, version],
	"firstRead": {"routing": routing, "versions": [version, {"buildID": "v2"}]},
	"plan": {"target": {"buildID": "v3"}},
	"record": {
		"desired": {"current": "v2", "ramping": {"buildID": "v3", "percentage": 5}},
		"promotions": [{"buildID": "v1", "leftAt": "2026-02-28T12:00:00Z"}, {"buildID": "v2"}],
	},
	"deployment": {"spec": {
		"sunset": {"scaledownDelay": "1h", "deleteDelay": "24h"},
		"rollout": {"rollback": {"window": "30m"}},
	}},
}

missing(input_document, now) := got if {
	got := removal.missing with input as input_document
		with time.now_ns as time.parse_rfc3339_ns(now)
}

later := "2026-03-02T12:00:00Z"

never_routed := object.union(doc("ScaleDown", unused), {"record": {"promotions": []}})

test_the_first_read_saw_traffic if {
	missing(object.union(doc("ScaleDown", drained), {"firstRead": {"routing": {"current": "v1"}}}), later) == {"it is the current version"}
	missing(object.union(doc("ScaleDown", drained), {"firstRead": {"routing": {"ramping": "v1"}}}), later) == {"it has a ramp"}
	missing(object.union(doc("ScaleDown", drained), {"firstRead": {"routing": {"ramping": "v1", "hasRamp": false}}}), later) == set()
}

test_drained_for_long_enough if missing(doc("ScaleDown", drained), "2026-03-01T13:00:00Z") == set()

test_not_drained_for_long_enough if {
	missing(doc("ScaleDown", drained), "2026-03-01T12:59:59Z") == {"it has not been drained, or unused, for long enough"}
}

test_a_longer_floor if {
	got := removal.missing with input as doc("ScaleDown", drained)
		with data.rampart.config.sunset.evidence.minScaledownDelay as "2h"
		with time.now_ns as time.parse_rfc3339_ns("2026-03-01T13:30:00Z")
	got == {"it has not been drained, or unused, for long enough"}
}

test_one_read_is_judged_as_it_is if {
	missing(json.remove(doc("ScaleDown", drained), ["/firstRead"]), later) == set()
}

test_draining if {
	missing(doc("ScaleDown", object.union(drained, {"drainage": "Draining"})), later) == {"it has not been drained, or unused, for long enough"}
}

test_no_time_of_drainage if {
	missing(doc("ScaleDown", json.remove(drained, ["/drainageChangedAt"])), later) == {"it has not been drained, or unused, for long enough"}
}

test_every_count_is_looked_at if {
	every n in [{"known": true, "n": 1}, {"known": false}] {
		missing(doc("ScaleDown", object.union(drained, {"openPinned": n})), later) == {"it is not known that no open workflow is pinned to it"}
	}
}

test_first_read_counts_too if {
	worse := object.union(drained, {"openPinned": {"known": true, "n": 3}})
	missing(object.union(doc("ScaleDown", drained), {"firstRead": {"versions": [worse]}}), later) == {"it is not known that no open workflow is pinned to it"}
}

test_first_read_without_the_version if {
	missing(object.union(doc("ScaleDown", drained), {"firstRead": {"versions": []}}), later) == {
		"it is not known that no open workflow is pinned to it",
		"it has not been drained, or unused, for long enough",
	}
}

test_first_read_failed if {
	missing(object.union(doc("ScaleDown", drained), {"firstRead": {"routing": {"known": false}}}), later) == {"an earlier read of this cycle failed"}
}

test_stale_read if {
	missing(object.union(doc("ScaleDown", drained), {"routing": {"fresh": false}}), later) == {"Temporal was not read just now"}
}

test_no_target if {
	missing(json.remove(doc("ScaleDown", drained), ["/plan/target"]), later) == {"it is not known which version the spec asks for"}
}

test_the_target if {
	missing(object.union(doc("ScaleDown", drained), {"plan": {"target": {"buildID": "v1"}}}), later) == {"the spec asks for it"}
}

test_not_in_git if "Git does not know it" in missing(doc("ScaleDown", json.remove(drained, ["/record"])), later)

test_not_known_at_all if {
	count(missing(object.union(doc("ScaleDown", drained), {"versions": []}), later)) == 3
}

test_routed if {
	missing(object.union(doc("ScaleDown", drained), {"routing": {"current": "v1"}}), later) == {"it is the current version"}
	missing(object.union(doc("ScaleDown", drained), {"routing": {"ramping": "v1"}}), later) == {"it has a ramp"}
	missing(object.union(doc("ScaleDown", drained), {"routing": {"ramping": "v1", "hasRamp": false}}), later) == set()
}

test_desired if {
	missing(object.union(doc("ScaleDown", drained), {"record": {"desired": {"current": "v1"}}}), later) == {"the desired routing names it"}
	missing(object.union(doc("ScaleDown", drained), {"record": {"desired": {"ramping": {"buildID": "v1"}}}}), later) == {"the desired routing names it"}
}

test_window if {
	d := object.union(doc("ScaleDown", drained), {"deployment": {"spec": {"rollout": {"rollback": {"window": "72h"}}}}})
	missing(d, later) == {"the rollback window (72h) is not over"}
}

test_never_left if {
	d := object.union(doc("ScaleDown", drained), {"record": {"promotions": [{"buildID": "v1"}]}})
	missing(d, later) == {"the rollback window (30m) is not over"}
}

test_never_routed if {
	missing(never_routed, later) == set()
	missing(never_routed, "2026-03-02T11:59:59Z") == {"it has not been drained, or unused, for long enough"}
}

test_routed_once_and_now_without_drainage if {
	every key in ["firstActivatedAt", "becameCurrentAt", "deactivatedAt"] {
		d := object.union(never_routed, {"versions": [object.union(unused, {key: "2026-01-01T00:00:00Z"})]})
		missing(d, later) == {"it has not been drained, or unused, for long enough"}
	}
}

test_routed_once_by_git if {
	promoted := object.union(never_routed, {"record": {"promotions": [{"buildID": "v1", "leftAt": "2026-01-01T00:00:00Z"}]}})
	missing(promoted, later) == {"it has not been drained, or unused, for long enough"}
	routed := object.union(never_routed, {"versions": [object.union(unused, {"record": {"routedAt": "2026-01-01T00:00:00Z"}})]})
	missing(routed, later) == {"it has not been drained, or unused, for long enough"}
}

test_never_routed_and_yet_draining if {
	draining := object.union(never_routed, {"versions": [object.union(unused, {"drainage": "Draining"})]})
	missing(draining, later) == {"it has not been drained, or unused, for long enough"}
}

test_deleted_after_the_delay if {
	v := object.union(drained, retired)
	missing(doc("DeleteVersion", v), later) == set()
	missing(doc("DeleteVersion", v), "2026-03-02T11:59:59Z") == {"it has not been drained, or unused, for long enough"}
}

test_deleted_only_when_scaled_down if {
	v := object.union(object.union(drained, retired), {"record": {"guard": "On"}})
	missing(doc("DeleteVersion", v), later) == {"it has not been scaled down"}
	w := object.union(object.union(drained, retired), {"record": {"replicas": 1}})
	missing(doc("DeleteVersion", w), later) == {"it has not been scaled down"}
}

test_deleted_only_without_pollers if {
	every queues in [[{"pollers": {"known": true, "count": 1}}], [{"pollers": {"known": false, "count": 0}}]] {
		v := object.union(object.union(drained, retired), {"queues": queues})
		missing(doc("DeleteVersion", v), later) == {"it is not known that its pollers are gone"}
	}
	v := json.remove(object.union(drained, retired), ["/queuesKnown"])
	missing(doc("DeleteVersion", v), later) == {"it is not known that its pollers are gone"}
}

gone := {
	"buildID": "v1",
	"listed": false,
	"openPinned": {"known": true, "n": 0},
	"record": {"guard": "Off", "replicas": 0},
}

test_files_go_when_the_server_forgot if missing(doc("RemoveFiles", gone), later) == set()

test_files_stay_while_listed if {
	missing(doc("RemoveFiles", object.union(gone, {"listed": true})), later) == {"the server still lists it"}
	missing(doc("RemoveFiles", json.remove(gone, ["/listed"])), later) == {"the server still lists it"}
}

test_files_stay_while_scaled_up if {
	missing(doc("RemoveFiles", object.union(gone, {"record": {"guard": "On"}})), later) == {"it has not been scaled down"}
}

asked := {"record": {"retire": {"by": "ada", "at": "2026-03-01T12:00:00Z"}}}

test_one_that_a_person_retires_goes_without_delays_and_window if {
	missing(doc("ScaleDown", object.union(drained, asked)), "2026-03-01T12:00:00Z") == set()
	now := "2026-02-28T12:00:01Z"
	"the rollback window (30m) is not over" in missing(doc("ScaleDown", drained), now)
	not "the rollback window (30m) is not over" in missing(doc("ScaleDown", object.union(drained, asked)), now)
	missing(object.union(never_routed, {"versions": [object.union(unused, asked)], "firstRead": {"versions": [object.union(unused, asked)]}}), "2026-03-01T12:00:00Z") == set()
}

test_one_that_a_person_retires_keeps_the_environments_delays if {
	got := missing(doc("ScaleDown", object.union(drained, asked)), "2026-03-01T12:30:00Z") with data.rampart.config.sunset.evidence.minScaledownDelay as "1h"
	got == {"it has not been drained, or unused, for long enough"}
}

test_a_retired_worker_deployment_has_no_target if {
	without := object.remove(doc("ScaleDown", drained), ["plan"])
	missing(without, later) == {"it is not known which version the spec asks for"}
	missing(object.union(without, {"record": {"retire": {"current": "Keep"}}}), later) == set()
	"the rollback window (30m) is not over" in missing(without, "2026-02-28T12:00:01Z")
	not "the rollback window (30m) is not over" in missing(object.union(without, {"record": {"retire": {"current": "Keep"}}}), "2026-02-28T12:00:01Z")
}
