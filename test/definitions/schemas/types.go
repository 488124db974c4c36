// Package schemas has the objects that never reach a cluster as controller-gen wants them. make crds makes the
// definitions from them that the JSON Schemas of install/schemas are made of.
//
// +groupName=rampart.dev
// +versionName=v1alpha1
package schemas

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// Config is rampart.yaml, at the repository's root: the environments, where their specs are, and where the bot writes.
// +kubebuilder:resource
type Config struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec v1alpha1.ConfigSpec `json:"spec"`
}

// Waiver is an exception from a policy rule that expires.
// +kubebuilder:resource
type Waiver struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec v1alpha1.WaiverSpec `json:"spec"`
}

// Routing is routing.yaml: the desired routing of a worker deployment, and what the bot remembers of it. A person may
// edit spec.desired.
// +kubebuilder:resource
type Routing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec v1alpha1.RoutingSpec `json:"spec"`
}

// Simulation is a scripted world for rampart simulate.
// +kubebuilder:resource
type Simulation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec v1alpha1.SimulationSpec `json:"spec"`
}
