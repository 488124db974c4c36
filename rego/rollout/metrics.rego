package rampart.rollout

import data.rampart.config.rollout.metrics
import data.rampart.library.candidate
import data.rampart.library.match
import data.rampart.library.thresholds

# METADATA
# title: Thresholds on metrics
# description: >-
#   Named metrics of the spec's analysis against limits: beyond one, traffic is not raised, or the candidate is turned
#   back. A metric that is missing or too old raises nothing (the rollout waits for it), and turns nothing back. Off
#   until a threshold is configured.
# custom:
#   rule: rollout.metrics
#   parameters:
#     thresholds: limits of metrics
hold contains {"rule": "rollout.metrics", "msg": msg, "metric": t.metric} if {
	input.action.raises == true
	input.action.from > 0
	some t in metrics.thresholds
	match.scope(t)
	object.get(t, "onBreach", "hold") == "hold"
	msg := thresholds.breach(t)
}

rollback contains {"rule": "rollout.metrics", "msg": msg, "metric": t.metric} if {
	candidate.judged
	some t in metrics.thresholds
	match.scope(t)
	object.get(t, "onBreach", "hold") == "rollback"
	msg := thresholds.breach(t)
}
