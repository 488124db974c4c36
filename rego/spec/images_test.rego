package rampart.spec_test

import data.rampart.spec

image(reference) := {
	"environment": {"name": "prod"},
	"deployment": {"spec": {
		"rollout": {"strategy": "AllAtOnce"},
		"template": {"spec": {"containers": [{"name": "app", "image": reference}]}},
	}},
}

# What is refused where fixed tags are asked for is a warning elsewhere.
denied(document) := refused if {
	refused := {f.msg | some f in spec.deny} with input as document
		with data.rampart.config.spec.images.fixedTagEnvironments as ["pr*"]
	warned := {f.msg | some f in spec.warn} with input as document
		with data.rampart.config.spec.images.fixedTagEnvironments as ["pr*"]
	warned == set()
	elsewhere := {f.msg | some f in spec.warn} with input as document
		with data.rampart.config.spec.images.fixedTagEnvironments as ["staging"]
	elsewhere == refused
	usual := {f.msg | some f in spec.warn} with input as document
	usual == refused
	count(spec.deny) == 0 with input as document
}

test_fixed_tag if denied(image("shop/app:1.2.3")) == set()

test_latest if {
	denied(image("shop/app:latest")) == {"container app: tag latest of shop/app:latest moves; use a tag that stays, or a digest"}
}

test_no_tag if {
	denied(image("localhost:5000/app")) == {"container app: localhost:5000/app has no tag, which means latest; use a tag that stays, or a digest"}
}

test_digest_pins if {
	denied(image("shop/app:latest@sha256:ab")) == set()
	denied(image("shop/app@sha256:ab")) == set()
}

test_patterns_of_tags if {
	got := spec.warn with input as image("shop/app:main-snapshot")
		with data.rampart.config.spec.images.mutableTags as ["*-snapshot"]
	count(got) == 1
}

test_digest_where_asked if {
	got := spec.deny with input as image("shop/app:1.2.3")
		with data.rampart.config.spec.images.digestEnvironments as ["prod"]
	{f.msg | some f in got} == {"container app: shop/app:1.2.3 has no digest, which environment prod asks for"}
	pinned := spec.deny with input as image("shop/app@sha256:ab")
		with data.rampart.config.spec.images.digestEnvironments as ["prod"]
	pinned == set()
	other := spec.deny with input as image("shop/app:1.2.3")
		with data.rampart.config.spec.images.digestEnvironments as ["staging"]
	other == set()
}
