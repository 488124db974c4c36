package v1alpha1

import (
	"strings"
)

// podTemplate checks what a Deployment's pod template needs beyond Kubernetes' types, and that it leaves to Rampart
// what Rampart puts in.
func (v *validator) podTemplate(n *node) {
	if n == nil {
		return
	}
	for _, key := range []string{"temporal.io/deployment-name", "temporal.io/build-id"} {
		if l := n.at("metadata", "labels").get(key); l != nil {
			v.warnf(l, "Rampart sets this label itself: what is written here is overwritten")
		}
	}
	spec := v.require(n, "spec")
	if spec == nil {
		return
	}
	if policy := spec.get("restartPolicy"); policy.present() && policy.str() != "Always" && policy.str() != "" {
		v.suggest(policy, "Always", "a Deployment's pods always restart")
	}
	for _, volume := range spec.get("volumes").items() {
		if name := volume.get("name"); name.str() == TLSVolume || name.str() == CAVolume {
			v.errorf(name, "Rampart adds a volume %s itself: choose another name", name.str())
		}
	}
	containers := v.require(spec, "containers")
	if containers != nil && len(containers.items()) == 0 {
		v.errorf(containers, "at least one container is required")
	}
	v.containers(append(append([]*node{}, containers.items()...), spec.get("initContainers").items()...))
}

// containers checks all of a pod's containers, whose names are unique together.
func (v *validator) containers(all []*node) {
	v.unique(all, "name", "container")
	for _, c := range all {
		if name := v.text(c, "name"); name != nil {
			v.label(name, "a container's name")
		}
		v.text(c, "image")
		v.env(c.get("env").items())
		for _, mount := range c.get("volumeMounts").items() {
			if name := mount.get("name"); name.str() == TLSVolume || name.str() == CAVolume {
				v.errorf(name, "Rampart mounts %s itself: choose another name", name.str())
			}
			switch path := mount.get("mountPath"); strings.TrimRight(path.str(), "/") {
			case TLSMountPath:
				v.errorf(path, "Rampart mounts the client certificate at %s: choose another path", TLSMountPath)
			case CAMountPath:
				v.errorf(path, "Rampart mounts the certificates to trust at %s: choose another path", CAMountPath)
			}
		}
	}
}

func (v *validator) env(all []*node) {
	seen := make(map[string]*node, len(all))
	for _, e := range all {
		name := v.text(e, "name")
		if name == nil {
			continue
		}
		switch first := seen[name.str()]; {
		case isOwnedEnv(name.str()):
			v.errorf(name, "%s is set by Rampart: remove it here", name.str())
		case isLegacyEnv(name.str()):
			v.warnf(name, "%s is set by Rampart too in an environment with workerEnv: %s", name.str(),
				EnvWithLegacyNames)
		case first != nil:
			// Kubernetes takes the last one; tools that merge lists by name fail.
			v.warnf(name, "%s is there already, on line %d; the last one counts", quote(name.str()), first.line)
		}
		seen[name.str()] = name
	}
}
