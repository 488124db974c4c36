package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
)

// VersionReferences are the objects that the pod templates of one version name.
type VersionReferences struct {
	BuildID string `json:"buildID"`
	// State of the version as Git has it.
	State VersionStatus `json:"state"`
	// ScaledDown says that Git has the version at 0 replicas, with its guard off.
	ScaledDown bool `json:"scaledDown,omitempty"`
	// Objects sorted by kind and name, all in the worker deployment's namespace.
	Objects []Reference `json:"objects"`
	// Problem says which manifest cannot be read; "": all can.
	Problem string `json:"problem,omitempty"`
}

// Reference is an object that a pod template names.
type Reference struct {
	// Kind is ConfigMap, Secret, ServiceAccount or PersistentVolumeClaim.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Optional says that pods start without the object.
	Optional bool `json:"optional,omitempty"`
	// Files of the repository that hold the object, sorted.
	Files []string `json:"files,omitempty"`
	// Removed are the files that held the object before a change that leaves it in none.
	Removed []string `json:"removed,omitempty"`
}

// LosesReferences reports whether a change removes an object that a version names.
func (s *Snapshot) LosesReferences() bool {
	return slices.ContainsFunc(s.References, func(v VersionReferences) bool {
		return slices.ContainsFunc(v.Objects, func(r Reference) bool { return len(r.Removed) > 0 })
	})
}

// References lists what the rendered manifests of each recorded version name, in the order of the record. Files are
// not filled in.
func (r Record) References() []VersionReferences {
	var out []VersionReferences
	for _, v := range r.Versions() {
		is := VersionReferences{BuildID: v.BuildID, State: r.statusOf(v.BuildID),
			ScaledDown: v.Guard == v1alpha1.GuardOff && v.Replicas != nil && *v.Replicas == 0}
		named := references{}
		for _, name := range slices.Sorted(maps.Keys(v.Files)) {
			file := layout.VersionFile(v.BuildID, name)
			if err := named.read(r.Files[file].Data); err != nil && is.Problem == "" {
				is.Problem = fmt.Sprintf("%s cannot be read: %v", file, err)
			}
		}
		is.Objects = named.sorted()
		out = append(out, is)
	}
	return out
}

// statusOf is what status.yaml says of a version; without that, what the desired routing says.
func (r Record) statusOf(buildID string) VersionStatus {
	if status := r.LastStatus(); status != nil {
		all := status.Versions()
		if i := slices.IndexFunc(all, func(v v1alpha1.VersionStatus) bool { return v.BuildID == buildID }); i >= 0 {
			return VersionStatus(all[i].Status)
		}
	}
	desired := r.Routing.Spec.Desired
	switch {
	case desired.Current == buildID:
		return StatusCurrent
	case desired.Ramping != nil && desired.Ramping.BuildID == buildID:
		return StatusRamping
	}
	return StatusUnknown
}

// The kinds of objects that pod templates name.
const (
	kindConfigMap      = "ConfigMap"
	kindSecret         = "Secret"
	kindServiceAccount = "ServiceAccount"
	kindClaim          = "PersistentVolumeClaim"
)

type objectName struct{ kind, name string }

// references are objects that are named, each with whether every place says that it is optional.
type references map[objectName]bool

func (r references) sorted() []Reference {
	out := make([]Reference, 0, len(r))
	for object, optional := range r {
		out = append(out, Reference{Kind: object.kind, Name: object.name, Optional: optional})
	}
	slices.SortFunc(out, func(a, b Reference) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return out
}

// add adds an object, by the field of its reference that has its name.
func (r references) add(kind string, of any, field string) {
	fields, _ := of.(map[string]any)
	name, _ := fields[field].(string)
	if name == "" {
		return
	}
	optional, _ := fields["optional"].(bool)
	at := objectName{kind, name}
	if before, there := r[at]; there {
		optional = optional && before
	}
	r[at] = optional
}

// read adds what the pod template of a manifest names; an object without one names nothing.
func (r references) read(manifest string) error {
	var object struct {
		Kind string         `json:"kind"`
		Spec map[string]any `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
		return err
	}
	if object.Kind == "" {
		return errors.New("it holds no object")
	}
	template, _ := object.Spec["template"].(map[string]any)
	pod, _ := template["spec"].(map[string]any)
	r.add(kindServiceAccount, pod, "serviceAccountName")
	secrets, _ := pod["imagePullSecrets"].([]any)
	for _, secret := range secrets {
		r.add(kindSecret, secret, "name")
	}
	r.walk(pod)
	return nil
}

// walk adds what is named anywhere below a pod spec: by volumes, projected or not, and by variables. Each reference
// has a field of its own, which is called the same in all types of volumes.
func (r references) walk(in any) {
	switch in := in.(type) {
	case []any:
		for _, item := range in {
			r.walk(item)
		}
	case map[string]any:
		for field, value := range in {
			switch field {
			case "configMap", "configMapKeyRef", "configMapRef":
				r.add(kindConfigMap, value, "name")
			case "secret":
				r.add(kindSecret, value, "secretName") // of a volume
				r.add(kindSecret, value, "name")       // of a projected one
			case "secretKeyRef", "secretRef", "nodePublishSecretRef":
				r.add(kindSecret, value, "name")
			case "azureFile":
				r.add(kindSecret, value, "secretName")
			case "persistentVolumeClaim":
				r.add(kindClaim, value, "claimName")
			}
			r.walk(value)
		}
	}
}
