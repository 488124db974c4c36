# METADATA
# title: Images of a spec
# description: The containers of the pod template and the parts of image references. Import data.rampart.library.images.
package rampart.library.images

# METADATA
# title: The containers of the pod template, init containers too
containers contains container if {
	some list in ["containers", "initContainers"]
	some container in input.deployment.spec.template.spec[list]
}

# METADATA
# title: The digest of an image reference
# description: Undefined if it has none.
digest(image) := split(image, "@")[1]

# METADATA
# title: Has an image reference a digest
pinned(image) if contains(image, "@")

# METADATA
# title: The tag of an image reference
# description: Undefined if it has none.
tag(image) := split(path[count(path) - 1], ":")[1] if path := split(split(image, "@")[0], "/")
