# METADATA
# title: Matching
# description: Which environments and deployments a parameter is meant for. Import data.rampart.library.match.
package rampart.library.match

import data.rampart.library.globs

# METADATA
# title: Is the environment one of these
# description: In a pattern "*" is any text; "*" alone is every environment.
environment(patterns) if {
	some pattern in patterns
	globs.fits(pattern, input.environment.name)
}

# METADATA
# title: Is the deployment in this scope
# description: >-
#   A scope is an object with environments (patterns) and labels (all of them have to be the deployment's). What it does
#   not have matches everything.
scope(s) if {
	in_environment(s)
	has_labels(s)
}

in_environment(s) if not s.environments

in_environment(s) if environment(s.environments)

has_labels(s) if {
	every key, value in object.get(s, "labels", {}) {
		input.deployment.metadata.labels[key] == value
	}
}
