package v1alpha1

// versionStates checks the states in which a version gets the object.
func (v *validator) versionStates(n *node) {
	if !n.present() {
		return
	}
	if len(n.items()) == 0 {
		v.errorf(n, "names no state: leave it out for every version that has pods")
	}
	seen := map[string]*node{}
	for _, state := range n.items() {
		if first := seen[state.str()]; first != nil {
			v.errorf(state, "%s is there already, on line %d", quote(state.str()), first.line)
		}
		seen[state.str()] = state
	}
}

// resourceHints warns of objects that Kubernetes takes and that do not do what they are for, and refuses those that
// reach beyond their version.
func (v *validator) resourceHints(template *node) {
	spec := template.get("spec")
	switch template.get("kind").str() {
	case "HorizontalPodAutoscaler", "ScaledObject":
		if spec.get("scaleTargetRef") == nil {
			v.warnf(orParent(spec, template), "scales no version: it needs scaleTargetRef: {}")
		}
	case "PodDisruptionBudget":
		if v.selectsAll(spec) {
			break
		}
		if spec.get("selector") == nil || spec.at("selector", "matchLabels") == nil &&
			len(spec.at("selector", "matchExpressions").items()) > 0 {
			v.warnf(orParent(spec, template),
				"is not for the pods of its version alone: it needs selector: {matchLabels: {}}")
		}
	}
	if template.get("kind").str() == "ScaledObject" {
		v.scaleToZero(spec)
	}
	v.templateMetadata(template.get("metadata"))
}

func (v *validator) scaleToZero(spec *node) {
	const why = "a version without pods has no pollers, and its rollout waits for them"
	switch f := spec.get("minReplicaCount"); {
	case f == nil || f.kind == nullNode:
		if spec != nil {
			v.warnf(spec, "minReplicaCount is 0 where it is left out: %s", why)
		}
	case f.kind == numberNode && f.text == "0":
		v.warnf(f, "0 means no pods while there is nothing to do: %s", why)
	}
}

func orParent(n, parent *node) *node {
	if n == nil {
		return parent
	}
	return n
}
