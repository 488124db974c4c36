package rampart.spec

import data.rampart.config.spec.pods
import data.rampart.library.globs
import data.rampart.library.podspecs

# METADATA
# title: Pods that stay in their containers
# description: >-
#   Privileged containers, paths and namespaces of the host, and added capabilities, where they are denied. The pod
#   templates of pools count, too. Off until a parameter says deny, or lists capabilities. It does not take the place of
#   Kubernetes' Pod Security Admission, which sees what is applied.
# custom:
#   rule: spec.pods
#   parameters:
#     privileged: deny for privileged containers, and those that may gain privileges
#     hostPaths: deny for volumes that are paths of the host
#     hostNamespaces: deny for the network, processes and IPC of the host, and for ports of it
#     capabilities: patterns of capabilities that containers may add; "*" is any, an empty list none
deny contains {"rule": "spec.pods", "msg": msg} if {
	pods.privileged == "deny"
	some container in podspecs.containers
	some field in ["privileged", "allowPrivilegeEscalation"]
	container.securityContext[field] == true
	msg := sprintf("container %s: securityContext.%s is true: remove it", [container.name, field])
}

deny contains {"rule": "spec.pods", "msg": msg} if {
	pods.hostPaths == "deny"
	some spec in podspecs.all
	some volume in spec.volumes
	path := volume.hostPath.path
	msg := sprintf("volume %s is %s of the host: use a volume that is not the host's", [volume.name, path])
}

deny contains {"rule": "spec.pods", "msg": msg} if {
	pods.hostNamespaces == "deny"
	some spec in podspecs.all
	some field in ["hostNetwork", "hostPID", "hostIPC"]
	spec[field] == true
	msg := sprintf("%s is true: remove it", [field])
}

deny contains {"rule": "spec.pods", "msg": msg} if {
	pods.hostNamespaces == "deny"
	some container in podspecs.containers
	some port in container.ports
	port.hostPort > 0
	msg := sprintf("container %s takes port %v of the host: remove hostPort", [container.name, port.hostPort])
}

deny contains {"rule": "spec.pods", "msg": msg} if {
	some container in podspecs.containers
	some capability in container.securityContext.capabilities.add
	every pattern in pods.capabilities { not globs.fits(pattern, capability) }
	msg := sprintf("container %s adds the capability %s, which is not allowed", [container.name, capability])
}
