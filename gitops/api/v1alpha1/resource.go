package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// VersionState is a state in which a version gets the object of a WorkerResourceTemplate.
// +kubebuilder:validation:Enum=Target;Current;Ramping;Draining;Drained;Inactive;NotRegistered
type VersionState string

// The states of a version. Target is the version that the spec asks for, whatever it is beside that.
const (
	StateTarget        VersionState = "Target"
	StateCurrent       VersionState = "Current"
	StateRamping       VersionState = "Ramping"
	StateDraining      VersionState = "Draining"
	StateDrained       VersionState = "Drained"
	StateInactive      VersionState = "Inactive"
	StateNotRegistered VersionState = "NotRegistered"
)

// ApplyTo says which versions get an object that scales them.
// +kubebuilder:validation:Enum=NewVersions;AllVersions
type ApplyTo string

// The versions that get an object that scales them.
const (
	NewVersions ApplyTo = "NewVersions"
	AllVersions ApplyTo = "AllVersions"
)

// RecordedResource is one object of a version that was made from a WorkerResourceTemplate.
type RecordedResource struct {
	// Template is the WorkerResourceTemplate's name; the object's file is <template>.yaml.
	Template string `json:"template"`
	// Hash of the template that the file was rendered from.
	Hash string `json:"hash"`
	// Scales says that the object scales the version's Deployment, whose replicas are left out then.
	Scales bool `json:"scales,omitempty"`
	// Path of the file that the template was in, from the repository's root; "": not known. Of several templates with
	// this name the one there counts.
	Path string `json:"path,omitempty"`
}

// DefaultResourceKinds are the kinds that a WorkerResourceTemplate may make unless the bot's own configuration says
// otherwise. They scale a version's workers or keep some of them running.
func DefaultResourceKinds() []string {
	return []string{"HorizontalPodAutoscaler", "PodDisruptionBudget", "ScaledObject"}
}

// groupsOf are the API groups of kinds that an entry means by their names alone. Other groups may have kinds of the
// same names, which do something else.
var groupsOf = map[string]string{"horizontalpodautoscaler": "autoscaling", "poddisruptionbudget": "policy",
	"scaledobject": "keda.sh"}

// AllowsKind says whether a list of kinds has an object's kind, in capitals or not. An entry is a kind, of any API
// group but for the kinds of DefaultResourceKinds, which are those of Kubernetes and KEDA, or Kind.group.
func AllowsKind(kinds []string, apiVersion, kind string) bool {
	group, _, grouped := strings.Cut(apiVersion, "/")
	for _, k := range kinds {
		wantKind, wantGroup, hasGroup := strings.Cut(strings.TrimSpace(k), ".")
		if known, ok := groupsOf[strings.ToLower(wantKind)]; ok && !hasGroup {
			wantGroup, hasGroup = known, true
		}
		if strings.EqualFold(wantKind, kind) && kind != "" &&
			(!hasGroup || grouped && strings.EqualFold(wantGroup, group)) {
			return true
		}
	}
	return false
}

// Deployment is the name of the worker deployment that the template is for.
func (s WorkerResourceTemplateSpec) Deployment() string {
	switch {
	case s.WorkerDeploymentRef != nil:
		return s.WorkerDeploymentRef.Name
	case s.TemporalWorkerDeploymentRef != nil:
		return s.TemporalWorkerDeploymentRef.Name
	}
	return ""
}

// RefPath is the path of the field that names the worker deployment.
func (s WorkerResourceTemplateSpec) RefPath() string {
	if s.WorkerDeploymentRef == nil && s.TemporalWorkerDeploymentRef != nil {
		return "spec.temporalWorkerDeploymentRef.name"
	}
	return "spec.workerDeploymentRef.name"
}

// Resource is what there is to know of the object that a template makes.
type Resource struct {
	APIVersion, Kind string
	// Hash is the hex of SHA-256 over the canonical JSON of the template as the user wrote it. No library's types are
	// in it, so no upgrade changes it.
	Hash string
	// Scales says that it has a scaleTargetRef that is filled in: the object scales the version's Deployment.
	Scales bool
	// MetricLabels says that it selects an external metric by labels that are filled in.
	MetricLabels bool
}

// Resource looks at a decoded template.
func (s WorkerResourceTemplateSpec) Resource() Resource {
	sum := sha256.Sum256(s.Template)
	r := Resource{Hash: hex.EncodeToString(sum[:])}
	var object struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Spec       json.RawMessage `json:"spec"`
	}
	if json.Unmarshal(s.Template, &object) != nil {
		return r // it was not decoded by Decode
	}
	r.APIVersion, r.Kind = object.APIVersion, object.Kind
	var spec any
	if len(object.Spec) > 0 && json.Unmarshal(object.Spec, &spec) == nil {
		r.Scales = hasScaleTarget(spec)
	}
	var metrics struct {
		Metrics []struct {
			External struct {
				Metric struct {
					Selector struct {
						MatchLabels map[string]json.RawMessage `json:"matchLabels"`
					} `json:"selector"`
				} `json:"metric"`
			} `json:"external"`
		} `json:"metrics"`
	}
	if json.Unmarshal(object.Spec, &metrics) == nil {
		for _, m := range metrics.Metrics {
			r.MetricLabels = r.MetricLabels || m.External.Metric.Selector.MatchLabels != nil
		}
	}
	return r
}

// hasScaleTarget reports whether there is a scaleTargetRef: {} at any depth.
func hasScaleTarget(v any) bool {
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			if m, ok := value.(map[string]any); ok && key == "scaleTargetRef" && len(m) == 0 || hasScaleTarget(value) {
				return true
			}
		}
	case []any:
		for _, item := range x {
			if hasScaleTarget(item) {
				return true
			}
		}
	}
	return false
}
