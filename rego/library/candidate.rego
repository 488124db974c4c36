# METADATA
# title: The candidate
# description: >-
#   Whether the action is about the version with new traffic, and what it was counted by. Import
#   data.rampart.library.candidate.
package rampart.library.candidate

import data.rampart.config.rollout.canary

# METADATA
# title: Is the candidate to be judged in this phase
judged if {
	input.action.kind == "Continue"
	input.action.buildID == input.canary.candidate.buildID
	input.canary.phase in canary.phases
}

# METADATA
# title: Have enough of its workflows closed since the ramp changed
sampled if {
	input.canary.candidate.buildID == input.action.buildID
	input.canary.candidate.counted.closed >= canary.minSamples
}

# METADATA
# title: What it was compared with, in words
compared := sprintf("%v of %v of %s", [
	input.canary.current.counted.failed, input.canary.current.counted.closed, input.canary.current.buildID,
])
