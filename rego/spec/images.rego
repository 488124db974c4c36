package rampart.spec

import data.rampart.config.spec.images
import data.rampart.library.images as image
import data.rampart.library.match

# METADATA
# title: Images that stay what they are
# description: >-
#   A tag that moves makes a version that is not the same tomorrow: refused, unless a digest pins it. In listed
#   environments every image needs a digest.
# custom:
#   rule: spec.images
#   parameters:
#     mutableTags: patterns of tags that move
#     digestEnvironments: patterns of environments in which every image needs a digest
deny contains {"rule": "spec.images", "msg": msg, "image": container.image} if {
	some container in image.containers
	not image.pinned(container.image)
	some pattern in images.mutableTags
	tag := image.tag(container.image)
	glob.match(pattern, [], tag)
	msg := sprintf("container %s: tag %s of %s moves; use a tag that stays, or a digest", [container.name, tag, container.image])
}

deny contains {"rule": "spec.images", "msg": msg, "image": container.image} if {
	some container in image.containers
	not image.pinned(container.image)
	not image.tag(container.image)
	msg := sprintf("container %s: %s has no tag, which means latest; use a tag that stays, or a digest", [container.name, container.image])
}

deny contains {"rule": "spec.images", "msg": msg, "image": container.image} if {
	match.environment(images.digestEnvironments)
	some container in image.containers
	not image.pinned(container.image)
	msg := sprintf("container %s: %s has no digest, which environment %s asks for", [container.name, container.image, input.environment.name])
}
