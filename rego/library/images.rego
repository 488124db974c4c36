# METADATA
# title: Images of a spec
# description: The containers of the pod template and the parts of image references. Import data.rampart.library.images.
package rampart.library.images

import data.rampart.library.globs

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

# METADATA
# title: Images that may be others tomorrow
# description: >-
#   Those without a digest whose tag fits one of the patterns, or that have no tag: a set of objects with why, in words
#   for people, and image.
moving(patterns) := tagged | untagged if {
	tagged := {{"why": why, "image": container.image} |
		some container in containers
		not pinned(container.image)
		some pattern in patterns
		globs.fits(pattern, tag(container.image))
		why := sprintf("container %s: tag %s of %s moves; use a tag that stays, or a digest", [
			container.name, tag(container.image), container.image,
		])
	}
	untagged := {{"why": why, "image": container.image} |
		some container in containers
		not pinned(container.image)
		not tag(container.image)
		why := sprintf("container %s: %s has no tag, which means latest; use a tag that stays, or a digest", [
			container.name, container.image,
		])
	}
}
