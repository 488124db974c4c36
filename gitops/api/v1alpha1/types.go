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
	// Replicas of the current and the target version; nil: an autoscaler owns the number.
	Replicas *int32 `json:"replicas,omitempty"`
	// Template is the pod template exactly as the user wrote it.
	Template PodTemplate `json:"template"`
	// MinReadySeconds is passed to the Deployment.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// ProgressDeadlineSeconds is passed to the Deployment, and after it a version without pollers counts as stalled.
	// Defaults to 600.
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// Strategy is Kubernetes' deployment strategy, passed to the Deployment as written; nil: Kubernetes' default.
	Strategy json.RawMessage `json:"strategy,omitempty"`
	Rollout  RolloutStrategy `json:"rollout"`
	Sunset   SunsetStrategy  `json:"sunset"`

	WorkerOptions WorkerOptions `json:"workerOptions"`
	// Pools are further Deployments that share the version.
	Pools []Pool `json:"pools,omitempty"`
}

// PodTemplate is a pod template as the user wrote it, as canonical JSON (sorted keys, no white space, numbers as
// written). It was checked against Kubernetes' own type when it was decoded.
type PodTemplate struct {
	Raw json.RawMessage
	// FirstImage is spec.containers[0].image, "" if there is none.
	FirstImage string
}

// RolloutKind is a rollout strategy.
type RolloutKind string

// The rollout strategies.
const (
	Manual      RolloutKind = "Manual"
	AllAtOnce   RolloutKind = "AllAtOnce"
	Progressive RolloutKind = "Progressive"
)

// RolloutStrategy says how a new version takes over.
type RolloutStrategy struct {
	Strategy RolloutKind    `json:"strategy"`
	Steps    []RolloutStep  `json:"steps,omitempty"`
	Gate     *Gate          `json:"gate,omitempty"`
	Rollback RollbackPolicy `json:"rollback"`
	Analysis *Analysis      `json:"analysis,omitempty"`
}

// RolloutStep is one step of a progressive rollout.
type RolloutStep struct {
	// RampPercentage of new workflows, above 0 and below 100; fractions are allowed.
	RampPercentage float64 `json:"rampPercentage"`
	// PauseDuration at this step before the next, at least one second.
	PauseDuration Duration `json:"pauseDuration"`
	// Gate that has to pass at this step before traffic goes on to the next, or to a promotion.
	Gate *Gate `json:"gate,omitempty"`
}

// OnGateFailure says what a failed gate leads to.
type OnGateFailure string

// The answers to a failed gate.
const (
	GateRollback OnGateFailure = "Rollback"
	GateHold     OnGateFailure = "Hold"
)

// Gate is a test workflow that has to complete on the candidate before traffic is raised.
type Gate struct {
	WorkflowType string `json:"workflowType"`
	// Input is one JSON argument; exclusive with InputFrom.
	Input     json.RawMessage  `json:"input,omitempty"`
	InputFrom *GateInputSource `json:"inputFrom,omitempty"`
	// OnFailure defaults to Hold for the first gate and Rollback for a step's gate.
	OnFailure OnGateFailure `json:"onFailure,omitempty"`
	// Timeout of the test workflow, by default one hour.
	Timeout Duration `json:"timeout,omitempty"`
}

// GateInputSource names one key of a ConfigMap or a Secret.
type GateInputSource struct {
	ConfigMapKeyRef *corev1.ConfigMapKeySelector `json:"configMapKeyRef,omitempty"`
	SecretKeyRef    *corev1.SecretKeySelector    `json:"secretKeyRef,omitempty"`
}

// RollbackPolicy says how long after a promotion the version before may come back at once.
type RollbackPolicy struct {
	// Window defaults to one hour, counted from when the version stopped being current.
	Window Duration `json:"window"`
}

// TooFewSamples says what happens when maxWait passes without enough samples.
type TooFewSamples string

// The answers to too few samples.
const (
	SamplesHold    TooFewSamples = "Hold"
	SamplesAdvance TooFewSamples = "Advance"
)

// Analysis configures the facts that policies judge a candidate by.
type Analysis struct {
	// Window is how long a step is looked at, at least, counted from the last ramp change. Default 10m.
	Window Duration `json:"window,omitempty"`
	// MinSamples of closed workflows of the candidate, fewer of which say nothing. Default 50.
	MinSamples int `json:"minSamples,omitempty"`
	// MaxWait for MinSamples, counted from the last ramp change. Default 2h.
	MaxWait         Duration      `json:"maxWait,omitempty"`
	OnTooFewSamples TooFewSamples `json:"onTooFewSamples,omitempty"`
	// Alpha is the chance of turning a healthy candidate back over the whole rollout. Default 0.01.
	Alpha float64 `json:"alpha,omitempty"`
	// Tolerance is how much larger the candidate's odds of failing may be than the current version's: 0.1 is a tenth. Default
	// 0.1.
	Tolerance float64 `json:"tolerance"`
	// MaxFailureRate is what the candidate's failure rate may be at most, whatever the current version's is: a fraction
	// above 0 and below 1; 0: no such ceiling.
	MaxFailureRate float64 `json:"maxFailureRate,omitempty"`
	// Failures are the ends of a workflow that count as failed. Default Failed and TimedOut. Other ends but
	// completion and continuing as new count neither way.
	Failures []FailedEnd `json:"failures,omitempty"`
	// Bake is for how long a promoted version is judged before the rollout is complete. Default 0s.
	Bake    Duration `json:"bake,omitempty"`
	Metrics []Metric `json:"metrics,omitempty"`
}

// FailedEnd is an end of a workflow that may count as a failure.
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
	Name       string           `json:"name"`
	Prometheus *PrometheusQuery `json:"prometheus,omitempty"`
	MaxAge     Duration         `json:"maxAge,omitempty"`
}

// PrometheusQuery is an instant query; {{ .BuildID }} and its like are filled in (see ParseQuery).
type PrometheusQuery struct {
	Query string `json:"query"`
}

// SunsetStrategy says when a version that is no longer needed goes. Both delays count from the moment
// the version became drained.
type SunsetStrategy struct {
	// ScaledownDelay defaults to 1h.
	ScaledownDelay Duration `json:"scaledownDelay"`
	// DeleteDelay defaults to 24h.
	DeleteDelay Duration    `json:"deleteDelay"`
	Evacuate    *Evacuation `json:"evacuate,omitempty"`
}

// Evacuation says what to do with workflows that stay on old versions.
type Evacuation struct {
	ContinueAsNewSignal *EvacuationSignal `json:"continueAsNewSignal,omitempty"`
	MoveTo              *EvacuationMove   `json:"moveTo,omitempty"`
	CancelAfter         Duration          `json:"cancelAfter,omitempty"`
	TerminateAfter      Duration          `json:"terminateAfter,omitempty"`
}

// EvacuationSignal asks workflows to continue as new.
type EvacuationSignal struct {
	Name  string   `json:"name"`
	After Duration `json:"after"`
}

// EvacuationMove proposes to move workflows to another version.
type EvacuationMove struct {
	// Target is Current or a build ID.
	Target string   `json:"target"`
	After  Duration `json:"after"`
}

// WorkerOptions ties the workers to Temporal.
type WorkerOptions struct {
	ConnectionRef     ConnectionRef `json:"connectionRef"`
	TemporalNamespace string        `json:"temporalNamespace"`
	// UnsafeCustomBuildID fixes the build ID: a changed template then is a rolling update in place.
	UnsafeCustomBuildID string `json:"unsafeCustomBuildID,omitempty"`
}

// ConnectionRef names a connection in the same namespace.
type ConnectionRef struct {
	Name string `json:"name"`
}

// Pool is a further Deployment that shares the spec's version.
type Pool struct {
	Name     string      `json:"name"`
	Replicas *int32      `json:"replicas,omitempty"`
	Template PodTemplate `json:"template"`
	// TaskQueues that the pool's workers poll. Without them a pool counts as there once a worker polls whose identity has the
	// name of one of its pods, which is what the SDKs give it unless its code says otherwise.
	TaskQueues []string `json:"taskQueues,omitempty"`
}

// Connection is where Temporal is and which Secret the pods use: what TemporalConnection and Connection decode to.
type Connection struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   ObjectMeta     `json:"metadata"`
	Spec       ConnectionSpec `json:"spec"`
}

// ConnectionSpec of a Connection. At most one of MutualTLSSecretRef and APIKeySecretRef is set.
type ConnectionSpec struct {
	HostPort           string                    `json:"hostPort"`
	TLS                *ConnectionTLS            `json:"tls,omitempty"`
	MutualTLSSecretRef *SecretReference          `json:"mutualTLSSecretRef,omitempty"`
	APIKeySecretRef    *corev1.SecretKeySelector `json:"apiKeySecretRef,omitempty"`
}

// ConnectionTLS of a connection.
type ConnectionTLS struct {
	ServerName string `json:"serverName,omitempty"`
}

// SecretReference names a Secret in the same namespace.
type SecretReference struct {
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
type WorkerResourceTemplateSpec struct {
	WorkerDeploymentRef         *ConnectionRef  `json:"workerDeploymentRef,omitempty"`
	TemporalWorkerDeploymentRef *ConnectionRef  `json:"temporalWorkerDeploymentRef,omitempty"`
	Template                    json.RawMessage `json:"template"`
	// Versions are the states in which a version gets the object; none: each version, until it is scaled down.
	Versions []VersionState `json:"versions,omitempty"`
}
