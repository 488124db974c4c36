package rampart.spec_test

import data.rampart.spec

referring(versions) := {
	"environment": {"name": "prod"},
	"deployment": {"namespace": "shop", "name": "checkout", "spec": {"rollout": {"strategy": "AllAtOnce"}}},
	"references": versions,
}

version(id, state, objects) := {"buildID": id, "state": state, "scaledDown": false, "objects": objects}

gone := {"kind": "ConfigMap", "name": "settings", "optional": false, "removed": ["config/a.yaml", "config/b.yaml"]}

kept := {"kind": "Secret", "name": "login", "optional": false, "files": ["config/login.yaml"]}

never_there := {"kind": "Secret", "name": "outside", "optional": false}

missed(versions) := said if {
	found := spec.warn with input as referring(versions)
		with data.rampart.config.spec.references.warnEnvironments as ["pr*"]
	said := {f.msg | some f in found; f.rule == "spec.references"}
}

test_references_off_by_default if spec.warn == set() with input as referring([version("v1", "Current", [gone])])

test_references_elsewhere if {
	found := spec.warn with input as referring([version("v1", "Current", [gone])])
		with data.rampart.config.spec.references.warnEnvironments as ["staging"]
	found == set()
}

test_references_removed if {
	versions := [
		version("v1", "Draining", [gone, kept]), version("v2", "Current", [gone, never_there]), version("v3", "Ramping", [kept]),
		version("v0", "Drained", [gone]), version("v4", "NotRegistered", [gone]),
		object.union(version("v5", "Unknown", [gone]), {"scaledDown": true}),
	]
	missed(versions) == {concat("", [
		"ConfigMap shop/settings is removed (it was in config/a.yaml, config/b.yaml), and still needed by v1 (draining), v2 (current): ",
		"keep it until these versions are gone",
	])}
}

test_references_unknown_state if count(missed([version("v1", "Unknown", [gone])])) == 1

test_references_not_needed if {
	missed([version("v0", "Drained", [gone])]) == set()
	missed([version("v1", "Current", [kept, never_there])]) == set()
}

test_references_without_a_change if {
	found := spec.warn with input as object.remove(referring([]), ["references"])
		with data.rampart.config.spec.references.warnEnvironments as ["*"]
	found == set()
}
