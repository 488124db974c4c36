package rampart.spec_test

import data.rampart.spec

pod(fields) := {
	"environment": {"name": "prod"},
	"deployment": {"spec": {
		"rollout": {"strategy": "AllAtOnce"},
		"template": {"spec": object.union({"containers": [{"name": "app", "image": "shop/app:1"}]}, fields)},
	}},
}

strict := {"privileged": "deny", "hostPaths": "deny", "hostNamespaces": "deny", "capabilities": ["NET_BIND_*"]}

refused(document) := {f.msg | some f in findings; f.rule == "spec.pods"} if {
	findings := spec.deny with input as document
		with data.rampart.config.spec.pods as strict
}

hostile := pod({
	"hostNetwork": true,
	"hostPID": true,
	"volumes": [{"name": "root", "hostPath": {"path": "/"}}, {"name": "tmp", "emptyDir": {}}],
	"containers": [{
		"name": "app", "image": "shop/app:1", "ports": [{"hostPort": 80}, {"containerPort": 80}],
		"securityContext": {"privileged": true, "capabilities": {"add": ["SYS_ADMIN", "NET_BIND_SERVICE"]}},
	}],
	"initContainers": [{"name": "init", "image": "shop/app:1", "securityContext": {"allowPrivilegeEscalation": true}}],
})

test_pods_off_by_default if spec.deny == set() with input as hostile

test_pods_plain if refused(pod({})) == set()

test_pods_hostile if {
	refused(hostile) == {
		"container app: securityContext.privileged is true: remove it",
		"container init: securityContext.allowPrivilegeEscalation is true: remove it",
		"volume root is / of the host: use a volume that is not the host's",
		"hostNetwork is true: remove it",
		"hostPID is true: remove it",
		"container app takes port 80 of the host: remove hostPort",
		"container app adds the capability SYS_ADMIN, which is not allowed",
	}
}

test_pods_of_pools if {
	document := object.union(pod({}), {"deployment": {"spec": {"pools": [{"name": "b", "template": {"spec": {"containers": [], "hostIPC": true}}}]}}})
	refused(document) == {"hostIPC is true: remove it"}
}
