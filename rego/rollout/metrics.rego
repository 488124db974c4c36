package rampart.rollout

import data.rampart.config.rollout.metrics
import data.rampart.library.match

# METADATA
# title: Thresholds on metrics
# description: >-
#   Named metrics of the spec's analysis against limits: beyond one, traffic is not raised, or the candidate is turned back.
#   A metric that is missing or too old raises nothing (the rollout waits for it), and turns nothing back. Off until a
#   threshold is configured.
# custom:
#   rule: rollout.metrics
#   parameters:
#     thresholds: >-
#       a list; each has a metric, max or min or both, onBreach (hold, the default, or rollback), and environments (patterns)
#       and labels that narrow it
hold contains {"rule": "rollout.metrics", "msg": msg, "metric": t.metric} if {
	input.action.raises
	input.action.from > 0
	some t in metrics.thresholds
	match.scope(t)
	object.get(t, "onBreach", "hold") == "hold"
	msg := breach(t)
}

rollback contains {"rule": "rollout.metrics", "msg": msg, "metric": t.metric} if {
	judged
	some t in metrics.thresholds
	match.scope(t)
	object.get(t, "onBreach", "hold") == "rollback"
	msg := breach(t)
}

breach(t) := sprintf("%s is %v, more than %v", [t.metric, fresh_value(t.metric), t.max]) if fresh_value(t.metric) > t.max

breach(t) := sprintf("%s is %v, less than %v", [t.metric, fresh_value(t.metric), t.min]) if {
	fresh_value(t.metric) < t.min
	not fresh_value(t.metric) > object.get(t, "max", fresh_value(t.metric))
}

fresh_value(name) := input.facts[name].value if input.facts[name].fresh
