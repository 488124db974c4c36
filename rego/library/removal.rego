# METADATA
# title: What is missing for a removal
# description: >-
#   The evidence for taking something of a version away, checked again from the input, in each read of this cycle. An
#   unknown fact is missing. Import data.rampart.library.removal.
package rampart.library.removal

import data.rampart.config.sunset.evidence

# METADATA
# title: The evidence that is missing, in words
missing contains "Temporal was not read just now" if not input.routing.fresh

missing contains "an earlier read of this cycle failed" if {
	input.firstRead
	not input.firstRead.routing.known
}

missing contains "it is not known which version the spec asks for" if {
	not input.plan.target
	not input.record.retire
}

missing contains "the spec asks for it" if input.plan.target.buildID == input.action.buildID

missing contains "Git does not know it" if not record

missing contains "it is the current version" if input.routing.current == input.action.buildID

missing contains "it is the current version" if input.firstRead.routing.current == input.action.buildID

missing contains "it has a ramp" if {
	input.routing.hasRamp == true
	input.routing.ramping == input.action.buildID
}

missing contains "it has a ramp" if {
	input.firstRead.routing.hasRamp == true
	input.firstRead.routing.ramping == input.action.buildID
}

missing contains "the desired routing names it" if input.record.desired.current == input.action.buildID

missing contains "the desired routing names it" if input.record.desired.ramping.buildID == input.action.buildID

missing contains "it is not known that no open workflow is pinned to it" if {
	some seen in reads
	not unpinned(seen)
}

missing contains sprintf("the rollback window (%s) is not over", [window]) if {
	some promotion in promotions
	not record.retire
	not input.record.retire
	not over(promotion)
}

missing contains "it has not been drained, or unused, for long enough" if {
	input.action.kind in {"ScaleDown", "DeleteVersion"}
	some seen in reads
	not rested(seen)
}

missing contains "it has not been scaled down" if {
	input.action.kind in {"DeleteVersion", "RemoveFiles"}
	not retired
}

missing contains "it is not known that its pollers are gone" if {
	input.action.kind == "DeleteVersion"
	not unpolled
}

missing contains "the server still lists it" if {
	input.action.kind == "RemoveFiles"
	some seen in reads
	not seen.listed == false
}

in_read(versions) := v if {
	some v in versions
	v.buildID == input.action.buildID
}

default version := {}

version := in_read(input.versions)

record := version.record

# reads are the version as each read of this cycle saw it, the newest first; {} where one did not.
reads := [version] if not input.firstRead

reads := [version, first_version] if input.firstRead

default first_version := {}

first_version := in_read(input.firstRead.versions)

promotions := [p | some p in input.record.promotions; p.buildID == input.action.buildID]

window := input.deployment.spec.rollout.rollback.window

# over says that the version left by this promotion can't be asked to come back any more.
over(promotion) if ns(promotion.leftAt) + time.parse_duration_ns(window) <= time.now_ns()

unpinned(v) if {
	v.openPinned.known
	v.openPinned.n == 0
}

# rested says since when the version is out of use, by its drainage, or since its creation if it never had traffic.
rested(v) if {
	v.drainage == "Drained"
	ns(v.drainageChangedAt) + drained_delay <= time.now_ns()
}

rested(v) if {
	not v.drainage
	never_routed(v)
	ns(record.createdAt) + delete_delay <= time.now_ns()
}

never_routed(v) if {
	count(promotions) == 0
	not record.routedAt
	not v.firstActivatedAt
	not v.becameCurrentAt
	not v.deactivatedAt
}

drained_delay := longer("scaledownDelay", evidence.minScaledownDelay) if input.action.kind == "ScaleDown"

drained_delay := delete_delay if input.action.kind == "DeleteVersion"

delete_delay := longer("deleteDelay", evidence.minDeleteDelay)

# A person who asked for the end of one version goes without the spec's delays, not without the environment's.
delays := {"scaledownDelay": "0s", "deleteDelay": "0s"} if record.retire

else := input.deployment.spec.sunset

longer(name, floor) := max([
	time.parse_duration_ns(delays[name]),
	time.parse_duration_ns(floor),
])

retired if {
	record.guard == "Off"
	record.replicas == 0
}

unpolled if {
	version.queuesKnown
	every queue in version.queues {
		queue.pollers.known
		queue.pollers.count == 0
	}
}

ns(t) := time.parse_rfc3339_ns(t)
