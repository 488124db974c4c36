package takeover

import (
	"maps"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// What servers and clients write beside what a person wrote.
const (
	annotationRevision    = "deployment.kubernetes.io/revision"
	annotationLastApplied = "kubectl.kubernetes.io/last-applied-configuration"
)

// source is what a person wrote of an object: without its status, and without what a server, the controller and other
// tools add.
func (o *object) source() map[string]any {
	meta := map[string]any{"name": o.name.Name}
	if o.name.Namespace != "" {
		meta["namespace"] = o.name.Namespace
	}
	for _, in := range []string{"labels", "annotations"} {
		own := map[string]any{}
		all, _ := at(o.value, "metadata", in).(map[string]any)
		for key, value := range all {
			if v1alpha1.KeyOwner(key) == "" && key != annotationRevision {
				own[key] = value
			}
		}
		if len(own) > 0 {
			meta[in] = own
		}
	}
	out := map[string]any{"apiVersion": o.apiVersion, "kind": o.kind, "metadata": meta}
	if spec, ok := o.value["spec"].(map[string]any); ok {
		spec = maps.Clone(spec)
		if template, ok := spec["template"].(map[string]any); ok && o.kind != v1alpha1.KindWorkerResourceTemplate {
			spec["template"] = withoutCreation(template)
		}
		out["spec"] = spec
	}
	return out
}

// withoutCreation is a pod template without the creationTimestamp: null that Kubernetes' own encoder writes.
func withoutCreation(template map[string]any) map[string]any {
	meta, ok := template["metadata"].(map[string]any)
	if _, there := meta["creationTimestamp"]; !ok || !there {
		return template
	}
	template, meta = maps.Clone(template), maps.Clone(meta)
	delete(meta, "creationTimestamp")
	template["metadata"] = meta
	if len(meta) == 0 {
		delete(template, "metadata")
	}
	return template
}

// manifest is a live Deployment as a file has it: its spec as it is, and its metadata without what a server or kubectl
// adds. There are no owner references.
func (o *object) manifest() map[string]any {
	meta := map[string]any{"name": o.name.Name, "namespace": o.name.Namespace}
	if labels, ok := at(o.value, "metadata", "labels").(map[string]any); ok {
		meta["labels"] = labels
	}
	if all, ok := at(o.value, "metadata", "annotations").(map[string]any); ok {
		all = maps.Clone(all)
		delete(all, annotationRevision)
		delete(all, annotationLastApplied)
		if len(all) > 0 {
			meta["annotations"] = all
		}
	}
	spec, _ := o.value["spec"].(map[string]any)
	spec = maps.Clone(spec)
	if template, ok := spec["template"].(map[string]any); ok {
		spec["template"] = withoutCreation(template)
	}
	return map[string]any{"apiVersion": o.apiVersion, "kind": o.kind, "metadata": meta, "spec": spec}
}
