package rampart.spec

import data.rampart.config.spec.references
import data.rampart.library.match
import data.rampart.library.referring

# METADATA
# title: Objects that old versions still need
# description: >-
#   A warning for a change that removes a ConfigMap, Secret, ServiceAccount or PersistentVolumeClaim from the repository
#   while the pod template of a version with traffic or open workflows names it. It is asked where a change is judged
#   before it is merged, by rampart preview and rampart validate --base; the bot itself does not compare commits. Off
#   until environments are listed.
# custom:
#   rule: spec.references
#   parameters:
#     warnEnvironments: patterns of environments in which it warns
warn contains {"rule": "spec.references", "msg": msg, "kind": lost.kind, "name": lost.name} if {
	match.environment(references.warnEnvironments)
	some lost in referring.removed
	said := "%s %s/%s is removed (it was in %s), and still needed by %s: keep it until these versions are gone"
	msg := sprintf(said, [
		lost.kind, input.deployment.namespace, lost.name,
		concat(", ", lost.files), concat(", ", lost.versions),
	])
}
