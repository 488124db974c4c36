# METADATA
# title: Progress of a rollout
# description: >-
#   Where the action's version stands, from the routing as it was read and the steps of the spec, whatever the proposal
#   says. Import data.rampart.library.progress.
package rampart.library.progress

# METADATA
# title: The share that the version has now, in percent
default share := 0

share := input.routing.percentage if {
	input.routing.hasRamp
	input.routing.ramping == input.action.buildID
}

# METADATA
# title: The percentages of the steps
steps := [step.rampPercentage | some step in input.deployment.spec.rollout.steps]

# METADATA
# title: The highest percentage that one step leads to
# description: The first step above the share; at the last step, that one. 0 for a rollout without steps.
default ceiling := 0

ceiling := min(following) if count(following) > 0

else := max(steps)

# The steps above the share.
following := [step.rampPercentage |
	above := share + precision
	some step in input.deployment.spec.rollout.steps
	step.rampPercentage > above
]

# Temporal keeps percentages with single precision: 33.333333 comes back as 33.333332.
precision := 0.0001

# METADATA
# title: Is the last step done
done if max(steps) - share <= precision

# METADATA
# title: Is it the first version
# description: Nothing is current and the version does not ramp, so there are no steps to take.
first if {
	input.routing.current == ""
	not ramps
}

ramps if {
	input.routing.hasRamp
	input.routing.ramping == input.action.buildID
}

# METADATA
# title: Does the action begin a rollout
# description: It gives a version its first traffic, beside one that is current.
starts if {
	input.action.kind in {"Ramp", "Promote"}
	input.action.raises
	not ramps
	not input.routing.current in {"", input.action.buildID}
}

# METADATA
# title: The first rollouts in words, and how many more there are
in_words(rollouts) := concat(", ", rollouts.names) if rollouts.count <= shown

in_words(rollouts) := sprintf("%s and %d more", [first, rollouts.count - shown]) if {
	rollouts.count > shown
	first := concat(", ", array.slice(rollouts.names, 0, shown))
}

shown := 3
