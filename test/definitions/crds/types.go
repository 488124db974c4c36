// Package crds has the objects that reach a cluster as controller-gen wants them. make crds makes the custom
// resource definitions of install/crds from them. They have no status subresource: what applies Git applies the status
// too.
//
// +groupName=temporal.io
// +versionName=v1alpha1
package crds

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// WorkerDeployment is what one worker deployment is to run and how new versions take over.
// +kubebuilder:metadata:annotations={"helm.sh/resource-policy=keep","rampart.dev/release=0.1.0"}
// +kubebuilder:resource:shortName=wd,categories=temporal
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.metadata.annotations.rampart\.dev/target`
// +kubebuilder:printcolumn:name="Current",type=string,JSONPath=`.metadata.annotations.rampart\.dev/current`
// +kubebuilder:printcolumn:name="Ramp",type=string,JSONPath=`.metadata.annotations.rampart\.dev/ramp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.metadata.annotations.rampart\.dev/ready`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.metadata.annotations.rampart\.dev/reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63",message="the name has lower-case letters, digits and inner hyphens, at most 63"
type WorkerDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   v1alpha1.WorkerDeploymentSpec    `json:"spec"`
	Status *v1alpha1.WorkerDeploymentStatus `json:"status,omitempty"`
}

// TemporalWorkerDeployment is a WorkerDeployment under its earlier name.
// +kubebuilder:metadata:annotations={"helm.sh/resource-policy=keep","rampart.dev/release=0.1.0"}
// +kubebuilder:resource:shortName=twd,categories=temporal
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.metadata.annotations.rampart\.dev/target`
// +kubebuilder:printcolumn:name="Current",type=string,JSONPath=`.metadata.annotations.rampart\.dev/current`
// +kubebuilder:printcolumn:name="Ramp",type=string,JSONPath=`.metadata.annotations.rampart\.dev/ramp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.metadata.annotations.rampart\.dev/ready`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.metadata.annotations.rampart\.dev/reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63",message="the name has lower-case letters, digits and inner hyphens, at most 63"
type TemporalWorkerDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   v1alpha1.WorkerDeploymentSpec    `json:"spec"`
	Status *v1alpha1.WorkerDeploymentStatus `json:"status,omitempty"`
}

// Connection is where Temporal is and which Secret the pods use.
// +kubebuilder:metadata:annotations={"helm.sh/resource-policy=keep","rampart.dev/release=0.1.0"}
// +kubebuilder:resource:categories=temporal
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.hostPort`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Connection struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec v1alpha1.ConnectionSpec `json:"spec"`
}

// ClusterConnection is a Connection that the worker deployments of every namespace may name. Its Secrets are in the
// namespace of each.
// +kubebuilder:metadata:annotations={"helm.sh/resource-policy=keep","rampart.dev/release=0.1.0"}
// +kubebuilder:resource:scope=Cluster,categories=temporal
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.hostPort`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterConnection struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec v1alpha1.ConnectionSpec `json:"spec"`
}

// TemporalConnection is a Connection under its earlier name.
// +kubebuilder:metadata:annotations={"helm.sh/resource-policy=keep","rampart.dev/release=0.1.0"}
// +kubebuilder:resource:shortName=tconn,categories=temporal
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.hostPort`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TemporalConnection struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec v1alpha1.ConnectionSpec `json:"spec"`
}

// WorkerResourceTemplate is an object rendered once for every version: an autoscaler, a disruption budget.
// +kubebuilder:metadata:annotations={"helm.sh/resource-policy=keep","rampart.dev/release=0.1.0"}
// +kubebuilder:resource:shortName=wrt,categories=temporal
// +kubebuilder:printcolumn:name="Worker",type=string,JSONPath=`.spec.workerDeploymentRef.name`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.template.kind`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WorkerResourceTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec v1alpha1.WorkerResourceTemplateSpec `json:"spec"`
}
