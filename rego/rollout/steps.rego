package rampart.rollout

import data.rampart.config.rollout.steps
import data.rampart.library.progress

# METADATA
# title: One step at a time
# description: >-
#   A ramp goes at most to the next step of the spec, and a promotion comes only after the last one, counted from the
#   routing as it was read. The first version, with nothing current, is promoted at once. No raise without a fresh read
#   and a spec.
# custom:
#   rule: rollout.steps
#   parameters:
#     maxPercentage: the highest percentage of any ramp; a promotion is not a ramp
#     maxIncrease: how many percentage points one ramp may add
deny contains {"rule": "rollout.steps", "msg": msg, "ceiling": progress.ceiling} if {
	input.action.kind == "Ramp"
	input.action.raises == true
	input.deployment.spec.rollout.strategy == "Progressive"
	input.action.to > progress.ceiling
	msg := sprintf("%v%% is more than one step: from %v%% the next step is %v%%", [
		input.action.to, progress.share, progress.ceiling,
	])
}

deny contains {"rule": "rollout.steps", "msg": msg} if {
	input.action.kind == "Promote"
	input.deployment.spec.rollout.strategy == "Progressive"
	not progress.first
	not progress.done
	msg := sprintf("at %v%% the last step is not done", [progress.share])
}

deny contains {"rule": "rollout.steps", "msg": msg} if {
	input.action.kind == "Ramp"
	input.action.raises == true
	input.action.to > steps.maxPercentage
	msg := sprintf("no ramp goes beyond %v%% here", [steps.maxPercentage])
}

deny contains {"rule": "rollout.steps", "msg": msg} if {
	input.action.kind == "Ramp"
	input.action.to - progress.share > steps.maxIncrease
	msg := sprintf("one ramp adds at most %v percentage points here, not %v", [
		steps.maxIncrease, input.action.to - progress.share,
	])
}

deny contains {"rule": "rollout.steps", "msg": "Temporal's routing was not read just now"} if {
	input.action.raises == true
	not input.routing.fresh
}

deny contains {"rule": "rollout.steps", "msg": "there is no spec to take steps from"} if {
	input.action.raises == true
	not input.deployment.spec
}
