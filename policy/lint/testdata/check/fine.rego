package rampart.rollout

import data.rampart.facts
import data.rampart.library.match

deny contains {"rule": "acme.a", "msg": sprintf("%v", [c.name])} if {
	every c in input.deployment.spec.template.spec.containers {
		c.resources.limits.memory
	}
	some c in input.deployment.spec.template.spec.containers
	units.parse_bytes(c.resources.limits.memory) > 3
	c.ports[_].containerPort == 80
	c.livenessProbe.httpGet.port == 8080
	c.readinessProbe.httpGet.port == "http"
	strings.any_prefix_match(c.image, ["a", "b"])
	not c.securityContext.privileged
	to_number(c.resources.requests.cpu) > 1
}

warn contains {"rule": "acme.b", "msg": "x", "until": input.git.when} if {
	facts.require("error_rate") > 3
	input.deployment.spec.rollout.steps[0].rampPercentage > 5
	count(input.waivers) > 0
	some w in input.waivers
	w.spec.rule == "rollout.freeze"
	regex.match("^prod", input.environment.name)
	input.deployment.spec.template.metadata.annotations["acme/x"] == "y"
	walk(input.deployment.spec, [path, value])
	path[0] == "template"
	value == "x"
	match.environment(["prod"])
	startswith(data.rampart.config.rollout.freeze.timezone, "E")
}

hold contains {"rule": "acme.c", "msg": msg} if {
	some i, j
	input.versions[i].buildID == input.versions[j].buildID
	v := input.versions[_]
	v.record.retire
	time.now_ns() - time.parse_rfc3339_ns(v.createdAt) > time.parse_duration_ns("24h")
	input.action.drift.direction == "Higher"
	input.canary.current.counted.rate > 0.1
	some name, fact in input.facts
	fact.value > 3
	labels := object.get(input.deployment.metadata, "labels", {})
	labels.tier == "gold"
	x := json.filter(input, ["action/kind"])
	x.action.kind == "Ramp"
	msg := concat(" ", [name, v.buildID])
	input.deployment.spec.sunset.evacuate.moveTo.target == "Current"
	input.plan.reason == "PolicyHold"
	object.keys(input.deployment.spec)["replicas"]
	input.deployment.spec.template.spec.volumes[_].configMap.items[_].mode == 3
	input.deployment.spec.strategy.rollingUpdate.maxSurge == "25%"
}

require_approval contains finding if {
	some finding in approvals
}

approvals contains {"rule": "acme.d", "msg": r.reason} if {
	some r in data.acme.reviewers
	match.scope(r)
	input.environment.approval.mode == "Direct"
}

approvals contains object.union(base, {"msg": "second"}) if input.environment.name in data.acme.environments

base := {"rule": "acme.e"}
