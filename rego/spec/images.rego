package rampart.spec

import data.rampart.config.spec.images
import data.rampart.library.images as image
import data.rampart.library.match

# METADATA
# title: Images that stay what they are
# description: >-
#   A tag that moves, or none, makes a version that is not the same tomorrow, unless a digest pins it: a warning, and
#   refused in listed environments. In others that are listed every image needs a digest.
# custom:
#   rule: spec.images
#   parameters:
#     mutableTags: patterns of tags that move
#     fixedTagEnvironments: patterns of environments in which a tag that moves, or none, is refused
#     digestEnvironments: patterns of environments in which every image needs a digest
deny contains {"rule": "spec.images", "msg": moving.why, "image": moving.image} if {
	match.environment(images.fixedTagEnvironments)
	some moving in image.moving(images.mutableTags)
}

warn contains {"rule": "spec.images", "msg": moving.why, "image": moving.image} if {
	not match.environment(images.fixedTagEnvironments)
	some moving in image.moving(images.mutableTags)
}

deny contains {"rule": "spec.images", "msg": msg, "image": container.image} if {
	match.environment(images.digestEnvironments)
	some container in image.containers
	not image.pinned(container.image)
	msg := sprintf("container %s: %s has no digest, which environment %s asks for", [
		container.name, container.image, input.environment.name,
	])
}
