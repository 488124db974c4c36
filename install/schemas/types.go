// Package schemas has JSON Schemas of every object that Rampart reads, for editors. Those of the kinds that never reach
// a cluster are made by controller-gen from the Go types of gitops/api/v1alpha1, as the custom resource definitions of
// install/crds are.
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
