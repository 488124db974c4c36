package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// maxResourcePrefix leaves room for a hyphen and eight digits within maxDeploymentName.
const maxResourcePrefix = 38

// UpdateResources gives a version the objects that its WorkerResourceTemplates say, and leaves its Deployment alone.
const UpdateResources ActionKind = "UpdateResources"

// ResourceTemplate is a WorkerResourceTemplate of the worker deployment.
type ResourceTemplate struct {
	Name string `json:"name"`
	// Path of its file, from the repository's root.
	Path string `json:"path"`
	// Copied says that other files have equal copies of the template, none of them at the recorded path: which one
	// people mean is not known.
	Copied bool `json:"copied,omitempty"`
	// Object is spec.template as the user wrote it, as canonical JSON; nothing if that is not known.
	Object json.RawMessage `json:"object,omitempty"`
	// Hash names Object.
	Hash string `json:"hash,omitempty"`
	// Versions are the states in which a version gets the object; none: each version, until it is scaled down.
	Versions []v1alpha1.VersionState `json:"versions,omitempty"`
	// Scales says that the object scales the version's Deployment.
	Scales bool `json:"scales,omitempty"`
	// ApplyTo says which versions get an object that scales them; "" is NewVersions.
	ApplyTo v1alpha1.ApplyTo `json:"applyTo,omitempty"`
	// Problem says why it cannot be used. What was made from it stays as it is.
	Problem *Problem `json:"problem,omitempty"`
}

// UnusableTemplates are the templates of the worker deployment that cannot be used, in the order of their names. Before
// them is the file that could not be read and may hold one.
func (s Snapshot) UnusableTemplates() []v1alpha1.TemplateProblem {
	var out []v1alpha1.TemplateProblem
	if p := s.ResourcesProblem; p != nil {
		out = append(out, v1alpha1.TemplateProblem{Message: p.Message})
	}
	for _, t := range s.Resources {
		if t.Problem != nil {
			out = append(out, v1alpha1.TemplateProblem{Name: t.Name, Message: t.Problem.Message})
		}
	}
	return out
}

// ResourceWrite is a change of one object of a version that is made from a WorkerResourceTemplate.
type ResourceWrite struct {
	// Template is the template's name.
	Template string `json:"template"`
	// Object is the template as the user wrote it; nothing: the version loses the object.
	Object json.RawMessage `json:"object,omitempty"`
	// Hash names Object, and Scales says that it scales the version's Deployment.
	Hash   string `json:"hash,omitempty"`
	Scales bool   `json:"scales,omitempty"`
}

// Removes reports whether the version loses the object.
func (w ResourceWrite) Removes() bool { return len(w.Object) == 0 }

// SayResources names the templates whose objects change.
func SayResources(writes []ResourceWrite) string {
	var out []string
	for _, w := range writes {
		name := w.Template
		if w.Removes() {
			name = "without " + name
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}

// ResourceFile is the name of an object's file below versions/<build ID>/.
func ResourceFile(template string) string { return template + ".yaml" }

// ResourceName is the name of a version's object: <name>-<template>-<build ID>, cut, and eight hex digits of SHA-256
// over the three joined. It is the in-cluster controller's, so that its objects can be taken over.
func ResourceName(name, template, buildID string) string {
	prefix := prefixOf(dnsName(strings.Join([]string{name, template, buildID}, "-")), maxResourcePrefix)
	sum := sha256.Sum256([]byte(name + template + buildID))
	return strings.TrimRight(prefix, "-") + "-" + hex.EncodeToString(sum[:4])
}

// ResourceSubject is a version as templates see it.
type ResourceSubject struct {
	// Have are the objects that it has.
	Have []v1alpha1.RecordedResource
	// States that it is in; none: they are not known, and what depends on them stays as it is.
	States []v1alpha1.VersionState
	// Pods says whether it has pods, or is scaled down.
	Pods Pods
	// Replicas in its manifest; nil: left out, or it is new.
	Replicas *int32
}

// Pods says whether a version has pods.
type Pods string

// The values of Pods.
const (
	PodsWanted   Pods = "Wanted"   // it is not scaled down
	PodsUnscaled Pods = "Unscaled" // the spec asks for 0 replicas, and no object may scale that
	PodsGone     Pods = "Gone"     // it is scaled down, and has no objects
)

// ResourceWrites are the changes that give a version the objects that the templates say, sorted by template; none where
// it has them. What depends on something that could not be read stays as it is.
func (s *Snapshot) ResourceWrites(of ResourceSubject) []ResourceWrite {
	have := map[string]v1alpha1.RecordedResource{}
	names := map[string]bool{}
	for _, r := range of.Have {
		have[r.Template], names[r.Template] = r, true
	}
	if of.Pods == PodsGone {
		return RemoveResources(of.Have)
	}
	templates := map[string]*ResourceTemplate{}
	for i := range s.Resources {
		t := &s.Resources[i]
		if templates[t.Name] == nil { // of two with one name the first counts
			templates[t.Name], names[t.Name] = t, true
		}
	}
	var out []ResourceWrite
	for _, name := range slices.Sorted(maps.Keys(names)) {
		t, had := templates[name], have[name]
		switch {
		case t == nil && s.ResourcesProblem != nil, t != nil && (t.Problem != nil || len(t.Object) == 0):
		case t != nil && t.selects(of, had.Template != ""):
			if had.Hash != t.Hash && (had.Scales || !t.WaitsForNew(of.Replicas)) {
				out = append(out, ResourceWrite{Template: name, Object: t.Object, Hash: t.Hash, Scales: t.Scales})
			}
		case had.Template != "":
			out = append(out, ResourceWrite{Template: name})
		}
	}
	return out
}

// selects reports whether a version gets the object.
func (t *ResourceTemplate) selects(of ResourceSubject, had bool) bool {
	switch {
	case t.Scales && of.Pods == PodsUnscaled:
		return false
	case len(t.Versions) == 0:
		return true
	case len(of.States) == 0:
		return had
	}
	return slices.ContainsFunc(of.States, func(state v1alpha1.VersionState) bool {
		return slices.Contains(t.Versions, state)
	})
}

// WaitsForNew reports whether a version that runs with a number of replicas does not get the object. Its number would
// leave its manifest, and Kubernetes would make it 1.
func (t *ResourceTemplate) WaitsForNew(replicas *int32) bool {
	return t.Scales && t.ApplyTo != v1alpha1.AllVersions && runs(replicas)
}

// ReplicasFor is the number of a version's manifest, where the spec asks for one, or for none. Where it asks for none a
// version that runs with a number keeps it, since Kubernetes would make it 1.
func ReplicasFor(spec, have *int32) *int32 {
	if spec == nil && runs(have) {
		return have
	}
	return spec
}

// runs reports whether a manifest has a number of replicas above 0.
func runs(replicas *int32) bool { return replicas != nil && *replicas > 0 }

// RemoveResources are the changes that take all objects from a version.
func RemoveResources(have []v1alpha1.RecordedResource) []ResourceWrite {
	var out []ResourceWrite
	for _, r := range have {
		out = append(out, ResourceWrite{Template: r.Template})
	}
	return out
}

// WithResources are a version's objects after changes, sorted by template.
func WithResources(have []v1alpha1.RecordedResource, changes []ResourceWrite) []v1alpha1.RecordedResource {
	changed := func(r v1alpha1.RecordedResource) bool {
		return slices.ContainsFunc(changes, func(w ResourceWrite) bool { return w.Template == r.Template })
	}
	out := slices.DeleteFunc(slices.Clone(have), changed)
	for _, w := range changes {
		if !w.Removes() {
			out = append(out, v1alpha1.RecordedResource{Template: w.Template, Hash: w.Hash, Scales: w.Scales})
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.RecordedResource) int { return strings.Compare(a.Template, b.Template) })
	if len(out) == 0 {
		return nil
	}
	return out
}

// Scaled reports whether one of a version's objects scales its Deployment.
func Scaled(have []v1alpha1.RecordedResource) bool {
	return slices.ContainsFunc(have, func(r v1alpha1.RecordedResource) bool { return r.Scales })
}
