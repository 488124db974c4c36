package v1alpha1

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// API groups and versions.
const (
	TemporalAPIVersion = "temporal.io/v1alpha1"
	RampartAPIVersion  = "rampart.dev/v1alpha1"
)

// Kinds of objects. The Temporal* kinds are the earlier names of the same objects.
const (
	KindTemporalWorkerDeployment = "TemporalWorkerDeployment"
	KindWorkerDeployment         = "WorkerDeployment"
	KindTemporalConnection       = "TemporalConnection"
	KindConnection               = "Connection"
	KindClusterConnection        = "ClusterConnection"
	KindWorkerResourceTemplate   = "WorkerResourceTemplate"
	KindConfig                   = "Config"
	KindWaiver                   = "Waiver"
	KindRouting                  = "Routing"
	KindSimulation               = "Simulation"
)

// ObjectMeta is the part of Kubernetes' object metadata that a person writes. Fields that a server fills in
// (uid, resourceVersion, managedFields and the like) are accepted and dropped.
type ObjectMeta struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// WorkerDeployment is the spec of one worker deployment: what TemporalWorkerDeployment and WorkerDeployment
// both decode to. Kind keeps the name the user chose.
type WorkerDeployment struct {
	APIVersion string                  `json:"apiVersion"`
	Kind       string                  `json:"kind"`
	Metadata   ObjectMeta              `json:"metadata"`
	Spec       WorkerDeploymentSpec    `json:"spec"`
	Status     *WorkerDeploymentStatus `json:"status,omitempty"`
}

// WorkerDeploymentSpec is what the user asks for. Defaults are filled in by decoding.
type WorkerDeploymentSpec struct {
	// Replicas of the current and the target version. Left out: new versions have none, for an autoscaler to own it.
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`
	// Template is the pod template exactly as the user wrote it.
	Template PodTemplate `json:"template"`
	// MinReadySeconds is passed to the Deployment.
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// ProgressDeadlineSeconds is passed to the Deployment, and after it a version without pollers counts as stalled.
	// Defaults to 600.
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// Strategy is Kubernetes' deployment strategy, passed to the Deployment as written. Left out: Kubernetes' default.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Strategy json.RawMessage `json:"strategy,omitempty"`
	// Rollout says how a new version takes over.
	Rollout RolloutStrategy `json:"rollout"`
	// Sunset says when a version that is no longer needed goes.
	// +optional
	Sunset SunsetStrategy `json:"sunset"`

	// WorkerOptions ties the workers to Temporal.
	WorkerOptions WorkerOptions `json:"workerOptions"`
	// Pools are further Deployments that share the version.
	// +listType=map
	// +listMapKey=name
	Pools []Pool `json:"pools,omitempty"`
}

// PodTemplate is a pod template as the user wrote it, as canonical JSON (sorted keys, no white space, numbers as
// written). It was checked against Kubernetes' own type when it was decoded.
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type PodTemplate struct {
	Raw json.RawMessage
	// FirstImage is spec.containers[0].image, "" if there is none.
	FirstImage string
}

// RolloutKind is a rollout strategy.
// +kubebuilder:validation:Enum=Manual;AllAtOnce;Progressive
type RolloutKind string

// The rollout strategies.
const (
	Manual      RolloutKind = "Manual"
	AllAtOnce   RolloutKind = "AllAtOnce"
	Progressive RolloutKind = "Progressive"
)

// RolloutStrategy says how a new version takes over.
// +kubebuilder:validation:XValidation:rule="self.strategy != 'Progressive' || has(self.steps) && size(self.steps) > 0",message="strategy Progressive needs steps"
type RolloutStrategy struct {
	// Strategy is AllAtOnce, Progressive by its steps, or Manual: a person moves the traffic.
	Strategy RolloutKind `json:"strategy"`
	// Steps of Progressive: each above the one before. The promotion follows the last one by itself.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:XValidation:rule="self.map(s, s.rampPercentage).isSorted() && self.all(s, self.exists_one(t, t.rampPercentage == s.rampPercentage))",message="each step's rampPercentage has to be above that of the step before"
	Steps []RolloutStep `json:"steps,omitempty"`
	// Gate that has to pass before the candidate gets any traffic.
	Gate *Gate `json:"gate,omitempty"`
	// Rollback says how long after a promotion the version before may come back at once.
	// +optional
	Rollback RollbackPolicy `json:"rollback"`
	// Analysis configures the facts that policies judge a candidate by.
	Analysis *Analysis `json:"analysis,omitempty"`
}

// RolloutStep is one step of a progressive rollout.
type RolloutStep struct {
	// RampPercentage of new workflows, above 0 and below 100; fractions are allowed.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:validation:ExclusiveMaximum=true
	RampPercentage float64 `json:"rampPercentage"`
	// PauseDuration at this step before the next, at least one second.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="is shorter than 1s"
	PauseDuration Duration `json:"pauseDuration"`
	// Gate that has to pass at this step before traffic goes on to the next, or to a promotion.
	Gate *Gate `json:"gate,omitempty"`
}

// OnGateFailure says what a failed gate leads to.
// +kubebuilder:validation:Enum=Rollback;Hold
type OnGateFailure string

// The answers to a failed gate.
const (
	GateRollback OnGateFailure = "Rollback"
	GateHold     OnGateFailure = "Hold"
)

// Gate is a test workflow that has to complete on the candidate before traffic is raised.
type Gate struct {
	// WorkflowType of the test workflow, which the candidate's workers run.
	// +kubebuilder:validation:MinLength=1
	WorkflowType string `json:"workflowType"`
	// Input is one JSON argument; exclusive with inputFrom.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Input json.RawMessage `json:"input,omitempty"`
	// InputFrom names the key of a ConfigMap or a Secret that has the argument, as JSON.
	InputFrom *GateInputSource `json:"inputFrom,omitempty"`
	// OnFailure says what a failed gate leads to: by default Hold for the first gate, and Rollback for a step's.
	OnFailure OnGateFailure `json:"onFailure,omitempty"`
	// Timeout of the test workflow, by default one hour.
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="has to be above 0"
	Timeout Duration `json:"timeout,omitempty"`
}

// GateInputSource names one key of a ConfigMap or a Secret.
// +kubebuilder:validation:XValidation:rule="has(self.configMapKeyRef) != has(self.secretKeyRef)",message="exactly one of configMapKeyRef and secretKeyRef is needed"
type GateInputSource struct {
	// ConfigMapKeyRef names a key of a ConfigMap, by its name and key.
	ConfigMapKeyRef *corev1.ConfigMapKeySelector `json:"configMapKeyRef,omitempty"`
	// SecretKeyRef names a key of a Secret, by its name and key.
	SecretKeyRef *corev1.SecretKeySelector `json:"secretKeyRef,omitempty"`
}

// RollbackPolicy says how long after a promotion the version before may come back at once.
type RollbackPolicy struct {
	// Window is counted from when the version stopped being current. Default 1h.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="is negative"
	Window Duration `json:"window"`
}

// TooFewSamples says what happens when maxWait passes without enough samples.
// +kubebuilder:validation:Enum=Hold;Advance
type TooFewSamples string

// The answers to too few samples.
const (
	SamplesHold    TooFewSamples = "Hold"
	SamplesAdvance TooFewSamples = "Advance"
)

// Analysis configures the facts that policies judge a candidate by.
type Analysis struct {
	// Window is how long a step is looked at, at least, counted from the last ramp change. Default 10m.
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="is not above 0"
	Window Duration `json:"window,omitempty"`
	// MinSamples is how many closed workflows of the candidate are needed: fewer say nothing. Default 50.
	// +kubebuilder:validation:Minimum=1
	MinSamples int `json:"minSamples,omitempty"`
	// MaxWait for MinSamples, counted from the last ramp change. Default 2h.
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="is not above 0"
	MaxWait Duration `json:"maxWait,omitempty"`
	// OnTooFewSamples says what happens when maxWait passes without enough samples. Default Hold.
	OnTooFewSamples TooFewSamples `json:"onTooFewSamples,omitempty"`
	// Alpha is the chance of turning a healthy candidate back over the whole rollout. Default 0.01.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=0.5
	Alpha float64 `json:"alpha,omitempty"`
	// Tolerance is how much larger the candidate's odds of failing may be than the current version's: 0.1 is a tenth.
	// Default 0.1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Tolerance float64 `json:"tolerance"`
	// MaxFailureRate is what the candidate's failure rate may be at most, whatever the current version's is. It is a
	// fraction above 0 and below 1; 0: no such ceiling.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=1
	// +kubebuilder:validation:ExclusiveMaximum=true
	MaxFailureRate float64 `json:"maxFailureRate,omitempty"`
	// Failures are the ends of a workflow that count as failed. Default Failed and TimedOut. Other ends but
	// completion and continuing as new count neither way.
	// +kubebuilder:validation:MinItems=1
	Failures []FailedEnd `json:"failures,omitempty"`
	// Bake is for how long a promoted version is judged before the rollout is complete. Default 0s.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="is negative"
	Bake Duration `json:"bake,omitempty"`
	// Metrics that policies see as facts, by their names.
	// +listType=map
	// +listMapKey=name
	Metrics []Metric `json:"metrics,omitempty"`
}

// FailedEnd is an end of a workflow that may count as a failure.
// +kubebuilder:validation:Enum=Failed;TimedOut;Terminated;Canceled
type FailedEnd string

// The ends of a workflow that may count as failures.
const (
	EndFailed     FailedEnd = "Failed"
	EndTimedOut   FailedEnd = "TimedOut"
	EndTerminated FailedEnd = "Terminated"
	EndCanceled   FailedEnd = "Canceled"
)

// DefaultFailures are the ends that count as failures unless a spec says otherwise.
func DefaultFailures() []FailedEnd { return []FailedEnd{EndFailed, EndTimedOut} }

// Metric is a named fact read from a metrics store.
type Metric struct {
	// Name of the fact.
	// +kubebuilder:validation:Pattern=`^[a-zA-Z_][a-zA-Z0-9_]{0,62}$`
	Name string `json:"name"`
	// Prometheus is the query that gives its value.
	// +required
	Prometheus *PrometheusQuery `json:"prometheus,omitempty"`
	// MaxAge of a value that still counts. Default 2m.
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="is not above 0"
	MaxAge Duration `json:"maxAge,omitempty"`
}

// PrometheusQuery is an instant query; {{ .BuildID }} and its like are filled in (see ParseQuery).
type PrometheusQuery struct {
	// Query in PromQL that gives one value. {{ .BuildID }} and its like are filled in.
	// +kubebuilder:validation:MinLength=1
	Query string `json:"query"`
}

// SunsetStrategy says when a version that is no longer needed goes. Both delays count from the moment
// the version became drained.
type SunsetStrategy struct {
	// ScaledownDelay is how long after it drained a version is scaled down. Default 1h.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="is negative"
	ScaledownDelay Duration `json:"scaledownDelay"`
	// DeleteDelay is how long after it drained a version's files are removed. Default 24h.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="is negative"
	DeleteDelay Duration `json:"deleteDelay"`
	// Evacuate says what to do with workflows that stay on old versions. Left out: nothing.
	Evacuate *Evacuation `json:"evacuate,omitempty"`
}

// Evacuation says what to do with workflows that stay on old versions.
// +kubebuilder:validation:XValidation:rule="!has(self.cancelAfter) || !has(self.terminateAfter) || duration(self.terminateAfter) == duration('0s') || duration(self.terminateAfter) >= duration(self.cancelAfter)",message="terminateAfter is shorter than cancelAfter"
type Evacuation struct {
	// ContinueAsNewSignal asks workflows to continue as new.
	ContinueAsNewSignal *EvacuationSignal `json:"continueAsNewSignal,omitempty"`
	// MoveTo proposes to move workflows to another version.
	MoveTo *EvacuationMove `json:"moveTo,omitempty"`
	// CancelAfter is how long after the version lost its traffic the rest is canceled.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="is negative"
	CancelAfter Duration `json:"cancelAfter,omitempty"`
	// TerminateAfter is how long after the version lost its traffic the rest is terminated.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="is negative"
	TerminateAfter Duration `json:"terminateAfter,omitempty"`
}

// EvacuationSignal asks workflows to continue as new.
type EvacuationSignal struct {
	// Name of the signal.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// After is how long after the version lost its traffic they are signaled.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="is negative"
	After Duration `json:"after"`
}

// EvacuationMove proposes to move workflows to another version.
type EvacuationMove struct {
	// Target is Current or a build ID.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?$`
	Target string `json:"target"`
	// After is how long after the version lost its traffic the move is proposed.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="is negative"
	After Duration `json:"after"`
}

// WorkerOptions ties the workers to Temporal.
type WorkerOptions struct {
	// ConnectionRef names a Connection in the same namespace, or a ClusterConnection, which is in none.
	ConnectionRef ConnectionRef `json:"connectionRef"`
	// TemporalNamespace that the workers poll.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^\S+$`
	TemporalNamespace string `json:"temporalNamespace"`
	// UnsafeCustomBuildID fixes the build ID: a changed template then is a rolling update in place.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?)?$`
	UnsafeCustomBuildID string `json:"unsafeCustomBuildID,omitempty"`
}

// ConnectionKind is the kind of connection that a spec names.
// +kubebuilder:validation:Enum=Connection;ClusterConnection
type ConnectionKind string

// ConnectionRef names a Connection in the same namespace, or a ClusterConnection, which is in none.
type ConnectionRef struct {
	// Kind of the connection: Connection by default.
	Kind ConnectionKind `json:"kind,omitempty"`
	// Name of the connection.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Of is the connection's namespace for a worker deployment in a namespace: the same one; "" for a ClusterConnection.
func (r ConnectionRef) Of(namespace string) string {
	if r.Kind == KindClusterConnection {
		return ""
	}
	return namespace
}

// In is the connection for people, as a worker deployment in a namespace names it: "connection shop/temporal",
// "ClusterConnection temporal".
func (r ConnectionRef) In(namespace string) string {
	if r.Kind == KindClusterConnection {
		return KindClusterConnection + " " + r.Name
	}
	return "connection " + namespace + "/" + r.Name
}

// WorkerDeploymentRef names a worker deployment in the same namespace.
type WorkerDeploymentRef struct {
	// Name of the worker deployment.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Pool is a further Deployment that shares the spec's version.
type Pool struct {
	// Name of the pool, which ends its Deployment's name and its pods' names.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self != 'deployment' && self != 'kustomization'",message="is taken by another file beside it: choose another name"
	Name string `json:"name"`
	// Replicas of the pool, as those of the spec.
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`
	// Template is the pool's pod template.
	Template PodTemplate `json:"template"`
	// TaskQueues that the pool's workers poll. Without them a pool counts as there once a worker polls whose identity
	// has the name of one of its pods, which is what the SDKs give it unless its code says otherwise.
	// +listType=set
	TaskQueues []string `json:"taskQueues,omitempty"`
}

// Connection is where Temporal is and which Secret the pods use: what TemporalConnection, Connection and
// ClusterConnection decode to. A ClusterConnection has no namespace, and its Secrets are in the namespace of each
// worker deployment.
type Connection struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   ObjectMeta     `json:"metadata"`
	Spec       ConnectionSpec `json:"spec"`
}

// Ref is how a spec names the connection.
func (c *Connection) Ref() ConnectionRef {
	if c.Kind == KindClusterConnection {
		return ConnectionRef{Kind: KindClusterConnection, Name: c.Metadata.Name}
	}
	return ConnectionRef{Name: c.Metadata.Name}
}

// ConnectionSpec of a Connection. At most one of MutualTLSSecretRef and APIKeySecretRef is set.
// +kubebuilder:validation:XValidation:rule="!(has(self.mutualTLSSecretRef) && has(self.apiKeySecretRef))",message="only one of mutualTLSSecretRef and apiKeySecretRef may be given"
type ConnectionSpec struct {
	// HostPort is host:port; an IPv6 address is in brackets.
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|\[[0-9a-fA-F:.]+\]):[1-9][0-9]{0,4}$`
	// +kubebuilder:validation:MaxLength=300
	// +kubebuilder:validation:XValidation:rule="int(self.substring(self.lastIndexOf(':') + 1)) < 65536",message="the port is not a number from 1 to 65535"
	HostPort string `json:"hostPort"`
	// TLS settings of the pods.
	TLS *ConnectionTLS `json:"tls,omitempty"`
	// MutualTLSSecretRef names a Secret with tls.crt and tls.key, by which the pods log in.
	MutualTLSSecretRef *SecretReference `json:"mutualTLSSecretRef,omitempty"`
	// APIKeySecretRef names the key of a Secret that has an API key, with which the pods log in.
	APIKeySecretRef *corev1.SecretKeySelector `json:"apiKeySecretRef,omitempty"`
}

// ConnectionTLS of a connection.
type ConnectionTLS struct {
	// ServerName that the pods expect in the server's certificate. Left out: the host of hostPort.
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?)?$`
	ServerName string `json:"serverName,omitempty"`
	// CACertSecretRef names a Secret whose key ca.crt has the certificates that the pods trust in place of the
	// system's.
	CACertSecretRef *SecretReference `json:"caCertSecretRef,omitempty"`
}

// SecretReference names a Secret in the same namespace.
type SecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// WorkerResourceTemplate is a resource rendered once for every version.
type WorkerResourceTemplate struct {
	APIVersion string                     `json:"apiVersion"`
	Kind       string                     `json:"kind"`
	Metadata   ObjectMeta                 `json:"metadata"`
	Spec       WorkerResourceTemplateSpec `json:"spec"`
}

// WorkerResourceTemplateSpec of a WorkerResourceTemplate. Exactly one of the references is set.
// +kubebuilder:validation:XValidation:rule="has(self.workerDeploymentRef) != has(self.temporalWorkerDeploymentRef)",message="exactly one of workerDeploymentRef and temporalWorkerDeploymentRef is needed"
type WorkerResourceTemplateSpec struct {
	// WorkerDeploymentRef names the worker deployment, which is in the same namespace.
	WorkerDeploymentRef *WorkerDeploymentRef `json:"workerDeploymentRef,omitempty"`
	// TemporalWorkerDeploymentRef is the same under its earlier name.
	TemporalWorkerDeploymentRef *WorkerDeploymentRef `json:"temporalWorkerDeploymentRef,omitempty"`
	// Template is the object, without a name.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Template json.RawMessage `json:"template"`
	// Versions are the states in which a version gets the object. Left out: each version, until it is scaled down.
	// +kubebuilder:validation:MinItems=1
	// +listType=set
	Versions []VersionState `json:"versions,omitempty"`
	// ApplyTo says which versions get an object that scales them. NewVersions: a version that runs with a number of
	// replicas keeps it, and gets no such object. AllVersions: it gets the object, and the number leaves its manifest;
	// Kubernetes may start over from 1 replica until the object acts.
	ApplyTo ApplyTo `json:"applyTo,omitempty"`
}
