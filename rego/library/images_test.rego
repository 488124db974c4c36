package rampart.library.images_test

import data.rampart.library.images

test_parts if {
	images.tag("app:1.2") == "1.2"
	images.tag("registry.example:5000/team/app:1.2@sha256:ab") == "1.2"
	not images.tag("registry.example:5000/team/app")
	not images.tag("app@sha256:ab")
	images.digest("app@sha256:ab") == "sha256:ab"
	not images.digest("app:1.2")
}

test_containers if {
	got := images.containers with input.deployment.spec.template.spec as {
		"containers": [{"name": "a", "image": "a:1"}],
		"initContainers": [{"name": "b", "image": "b:1"}],
		"volumes": [{"name": "c"}],
	}
	{c.name | some c in got} == {"a", "b"}
}
