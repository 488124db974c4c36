package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// PartCluster is the part of the input of policies with what the environment's cluster says.
const PartCluster = "cluster"

// Cluster is what a Kubernetes cluster says of the pods of a worker deployment's versions.
type Cluster struct {
	// At is when it was so, on our own clock; zero: it is not known.
	At time.Time `json:"at,omitzero"`
	// Problem says why it is not known; "" where it is.
	Problem string `json:"problem,omitempty"`
	// Versions that have files in Git, sorted by build ID.
	Versions []VersionPods `json:"versions,omitempty"`
}

// ClusterUnread is the problem of a cluster, or a namespace of it, that was not read yet and may well be soon.
const ClusterUnread = "the cluster was not read yet"

// ClusterAsk asks for the pods of a worker deployment's versions.
type ClusterAsk struct {
	Namespace string
	Versions  []VersionDeployments
}

// VersionDeployments are the names of a version's Deployments.
type VersionDeployments struct {
	BuildID     string
	Deployments []string
}

// ClusterAsk asks for the pods of the versions that have files in Git.
func (s *Snapshot) ClusterAsk() ClusterAsk {
	ask, versions := ClusterAsk{Namespace: s.Deployment.Namespace}, s.Record.Versions()
	for i, v := range versions {
		ask.Versions = append(ask.Versions, VersionDeployments{BuildID: v.BuildID,
			Deployments: TakenBy(versions[i : i+1])})
	}
	return ask
}

// Known reports whether the cluster was read.
func (c *Cluster) Known() bool { return c != nil && c.Problem == "" && !c.At.IsZero() }

// Version finds the pods of a version, nil if nothing is known of them.
func (c *Cluster) Version(buildID string) *VersionPods {
	if !c.Known() {
		return nil
	}
	for i := range c.Versions {
		if c.Versions[i].BuildID == buildID {
			return &c.Versions[i]
		}
	}
	return nil
}

// VersionPods are the pods of one version, those of all its Deployments together.
type VersionPods struct {
	BuildID string `json:"buildID"`
	// Desired, Ready and Available replicas, as the Deployments say.
	Desired   int `json:"desired"`
	Ready     int `json:"ready"`
	Available int `json:"available"`
	// Pods there are, but for those that end or have ended.
	Pods int `json:"pods"`
	// Problems that keep pods from running, those of the most pods first.
	Problems []PodProblem `json:"problems,omitempty"`
}

// PodReason is why pods do not run.
type PodReason string

// The reasons, by the names that Kubernetes has for them where it has one.
const (
	// NoDeployment says that a Deployment of the version is not in the cluster.
	NoDeployment PodReason = "NoDeployment"
	// FailedCreate says that pods are refused, as by a quota or an admission webhook.
	FailedCreate PodReason = "FailedCreate"
	// Unschedulable says that no node takes the pod.
	Unschedulable PodReason = "Unschedulable"
	// FailedMount says that a volume of the pod cannot be had.
	FailedMount PodReason = "FailedMount"
	// FailedCreatePodSandBox says that the node cannot start the pod, as for want of an address.
	FailedCreatePodSandBox PodReason = "FailedCreatePodSandBox"
	// ImagePullBackOff says that an image cannot be had.
	ImagePullBackOff PodReason = "ImagePullBackOff"
	// CreateContainerConfigError says that a container's configuration cannot be used, as for want of a Secret.
	CreateContainerConfigError PodReason = "CreateContainerConfigError"
	// CreateContainerError says that a container cannot be started.
	CreateContainerError PodReason = "CreateContainerError"
	// CrashLoopBackOff says that a container ends again and again.
	CrashLoopBackOff PodReason = "CrashLoopBackOff"
)

// PodsRunning stands among reasons for all pods being ready: then it is not the cluster that workers wait for.
const PodsRunning = "Running"

// PodProblem is one reason for which pods of a version do not run.
type PodProblem struct {
	Reason PodReason `json:"reason"`
	// Pods that it keeps from running; 0 where it is about pods that are not there.
	Pods int `json:"pods,omitempty"`
	// Message of the cluster, on one line and cut: text of others.
	Message string `json:"message,omitempty"`
}

// Compare orders problems: what is about pods that are not there comes first, then what is about most of them.
func (p PodProblem) Compare(o PodProblem) int {
	absent := func(p PodProblem) int { return cmp.Compare(min(p.Pods, 1), 1) }
	return cmp.Or(cmp.Compare(absent(p), absent(o)), cmp.Compare(o.Pods, p.Pods),
		strings.Compare(string(p.Reason), string(o.Reason)), strings.Compare(p.Message, o.Message))
}

// Reasons are the reasons of the problems, sorted and each once; PodsRunning alone where all pods are ready, and
// nothing while they start.
func (v *VersionPods) Reasons() []string {
	var out []string
	for _, p := range v.Problems {
		out = append(out, string(p.Reason))
	}
	if len(out) == 0 && v.Desired > 0 && v.Ready >= v.Desired {
		return []string{PodsRunning}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// shownProblems is how many problems of a version are told in one message.
const shownProblems = 2

// Text says how the pods are, "" while there is nothing to say of them: "2 of 2 pods: ImagePullBackOff: tag v2.3.1 not
// found".
func (v *VersionPods) Text() string {
	if v.Reasons() == nil {
		return ""
	}
	if len(v.Problems) == 0 {
		return fmt.Sprintf("%d of %d pods are ready", v.Ready, v.Desired)
	}
	var said []string
	for _, p := range v.Problems[:min(len(v.Problems), shownProblems)] {
		said = append(said, p.text(v.Pods))
	}
	if more := len(v.Problems) - len(said); more > 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(said, "; ")
}

func (p PodProblem) text(of int) string {
	text := string(p.Reason)
	if p.Pods > 0 {
		text = fmt.Sprintf("%d of %d pods: %s", p.Pods, of, p.Reason)
	}
	if p.Message != "" {
		text += ": " + p.Message
	}
	return text
}
