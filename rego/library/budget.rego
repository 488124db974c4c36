# METADATA
# title: Versions beside the action's
# description: Those that Git or Temporal knows. Import data.rampart.library.budget.
package rampart.library.budget

# METADATA
# title: The build IDs of the others, the oldest first
others := [v.buildID | some v in input.versions; v.buildID != input.action.buildID]

# METADATA
# title: The oldest of the others, and how many more there are
in_words := concat(", ", others) if count(others) <= shown

in_words := sprintf("%s and %d more", [concat(", ", array.slice(others, 0, shown)), count(others) - shown]) if {
	count(others) > shown
}

shown := 5
