package rampart.rollout

import data.rampart.config.rollout.backlog

# METADATA
# title: No more traffic for who can't keep up
# description: >-
#   A candidate whose oldest task on one of its queues has waited for longer than a limit gets no more traffic. An
#   unknown backlog holds nothing: for current and ramping versions the server splits one queue's backlog by the ramp.
# custom:
#   rule: rollout.backlog
#   parameters:
#     maxAge: how long the oldest task may have waited; 0s is for ever
hold contains {"rule": "rollout.backlog", "msg": msg, "queue": queue.name} if {
	input.action.raises == true
	input.action.from > 0
	some version in input.versions
	version.buildID == input.action.buildID
	some queue in version.queues
	limit := time.parse_duration_ns(backlog.maxAge)
	limit > 0
	queue.backlog.ageSeconds * 1000000000 > limit
	msg := sprintf("tasks of %s wait for more than %s on its %s task queue %s", [
		version.buildID, backlog.maxAge, lower(queue.type), queue.name,
	])
}
