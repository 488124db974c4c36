package v1alpha1

import (
	"slices"
	"strings"
)

// Labels and annotations by which other tools are told what to do with an object in the cluster: to take it over, to
// replace it with force, to keep it for ever. A team's files do not say this of what the bot writes.

// owners are the domains of such keys, with whose they are.
var owners = []struct{ domain, of string }{
	{"argocd.argoproj.io", "ArgoCD"},
	{"fluxcd.io", "Flux"},
	{"helm.sh", "Helm"},
	{"kubectl.kubernetes.io", "kubectl"},
	{"temporal.io", "Temporal's controller and Rampart"},
	{"rampart.dev", "Rampart"},
}

// allowedKeys are the keys of these domains that a team may write: the order of a sync, and the wish that the worker
// deployment ends.
var allowedKeys = []string{"argocd.argoproj.io/sync-wave", "rampart.dev/retire"}

// KeyOwner says whose a label's or annotation's key is; "": a team may write it.
func KeyOwner(key string) string {
	key = strings.ToLower(key)
	if slices.Contains(allowedKeys, key) {
		return ""
	}
	domain, _, prefixed := strings.Cut(key, "/")
	for _, o := range owners {
		if prefixed && (domain == o.domain || strings.HasSuffix(domain, "."+o.domain)) {
			return o.of
		}
	}
	return ""
}

// foreignKeys calls report for each label and annotation that is not a team's to write.
func foreignKeys(metadata *node, report func(n *node, owner string)) {
	for _, in := range []string{"labels", "annotations"} {
		for _, f := range metadata.get(in).fields() {
			if owner := KeyOwner(f.key); owner != "" {
				report(f, owner)
			}
		}
	}
}

// templateMetadata refuses what would have others do something with the objects of a template.
func (v *validator) templateMetadata(metadata *node) {
	foreignKeys(metadata, func(n *node, owner string) {
		v.errorf(n, "belongs to %s, and a template may not set it: remove it", owner)
	})
	for key, why := range map[string]string{
		"finalizers":      "keep the object in the cluster when its version goes",
		"ownerReferences": "have the object removed with another one",
	} {
		if n := metadata.get(key); n.present() && len(n.items()) > 0 {
			v.errorf(n, "%s, and a template may not set them: remove them", why)
		}
	}
}

// specMetadata warns of what status.yaml does not take over.
func (v *validator) specMetadata(metadata *node) {
	foreignKeys(metadata, func(n *node, owner string) {
		v.warnf(n, "belongs to %s, and is not written to status.yaml: remove it", owner)
	})
	for _, key := range []string{"finalizers", "ownerReferences"} {
		if n := metadata.get(key); n.present() && len(n.items()) > 0 {
			v.warnf(n, "is not written to status.yaml: remove it")
		}
	}
}

// selectsAll refuses a budget for all pods of the namespace, or for all that lack some label, and reports whether it
// did.
func (v *validator) selectsAll(spec *node) bool {
	selector := spec.get("selector")
	if !selector.present() {
		return false
	}
	if selector.get("matchLabels") != nil && selector.get("matchLabels").kind != nullNode {
		return false // {} is filled in
	}
	picks := func(e *node) bool {
		return e.get("operator").str() != "NotIn" && e.get("operator").str() != "DoesNotExist"
	}
	if slices.ContainsFunc(selector.get("matchExpressions").items(), picks) {
		return false
	}
	v.errorf(selector, "selects all pods of the namespace, those of others too: write matchLabels: {}, which is "+
		"filled in with the version's labels")
	return true
}
