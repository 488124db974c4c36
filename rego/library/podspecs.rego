# METADATA
# title: Pod specs of a spec
# description: >-
#   The pod specs of the pod template and those of pools, and the containers in them. Import
#   data.rampart.library.podspecs.
package rampart.library.podspecs

# METADATA
# title: The pod specs of the first Deployment and of all pools
all contains input.deployment.spec.template.spec

all contains pool.template.spec if some pool in input.deployment.spec.pools

# METADATA
# title: The containers of all pod specs, init and ephemeral containers too
containers contains container if {
	some spec in all
	some list in ["containers", "initContainers", "ephemeralContainers"]
	some container in spec[list]
}
