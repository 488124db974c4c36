package cluster

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Of each object a Reader keeps what it is asked for, and nothing else: no templates, no variables, no logs.

// problem is why a pod does not run, or cannot be made.
type problem struct {
	reason  rollout.PodReason
	message string
}

type deployment struct {
	metav1.ObjectMeta
	buildID                   string
	desired, ready, available int
	refused                   *problem
}

type replicaSet struct {
	metav1.ObjectMeta
	owner   types.UID
	refused *problem
}

type pod struct {
	metav1.ObjectMeta
	owner types.UID
	// over says that it ends, or has ended.
	over bool
	// starting says that nothing is known to be wrong, and a container was not started yet.
	starting bool
	problem  *problem
	// crashed is the crash of a container that was started again at restarted.
	crashed   *problem
	restarted time.Time
}

// event is a warning about a pod that does not start.
type event struct {
	metav1.ObjectMeta
	pod     types.UID
	problem *problem
	at      time.Time
}

// identified keeps of an object's metadata by what it is found.
func identified(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: strings.Clone(o.GetNamespace()), Name: strings.Clone(o.GetName()),
		UID: types.UID(strings.Clone(string(o.GetUID())))}
}

func ownerOf(o metav1.Object) types.UID {
	if c := metav1.GetControllerOf(o); c != nil {
		return types.UID(strings.Clone(string(c.UID)))
	}
	return ""
}

// strip makes of an object of the API server what is kept of it. What was stripped stays as it is.
func (r *Reader) strip(object any) (any, error) {
	from, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	var err error
	switch kind := from.GetKind(); kind {
	case "Deployment":
		err = decode(from, func(o *appsv1.Deployment) { object = r.deployment(o) })
	case "ReplicaSet":
		err = decode(from, func(o *appsv1.ReplicaSet) { object = r.replicaSet(o) })
	case "Pod":
		err = decode(from, func(o *corev1.Pod) { object = r.pod(o) })
	case "Event":
		err = decode(from, func(o *corev1.Event) { object = r.event(o) })
	default:
		err = fmt.Errorf("%s was not asked for", kind)
	}
	return object, err
}

func decode[T any](from *unstructured.Unstructured, use func(*T)) error {
	var to T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, &to); err != nil {
		return fmt.Errorf("decode %s %s/%s: %w", from.GetKind(), from.GetNamespace(), from.GetName(), err)
	}
	use(&to)
	return nil
}

func (r *Reader) deployment(o *appsv1.Deployment) *deployment {
	d := &deployment{ObjectMeta: identified(o), buildID: strings.Clone(o.Labels[rollout.LabelBuildID]), desired: 1,
		ready: int(o.Status.ReadyReplicas), available: int(o.Status.AvailableReplicas)}
	if o.Spec.Replicas != nil {
		d.desired = int(*o.Spec.Replicas)
	}
	for _, c := range o.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			d.refused = r.problem(rollout.FailedCreate, c.Message)
		}
	}
	return d
}

func (r *Reader) replicaSet(o *appsv1.ReplicaSet) *replicaSet {
	s := &replicaSet{ObjectMeta: identified(o), owner: ownerOf(o)}
	for _, c := range o.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue && c.Reason == "FailedCreate" {
			s.refused = r.problem(rollout.FailedCreate, withoutPod(c.Message))
		}
	}
	return s
}

// withoutPod leaves out the name of a pod that was not made, which is another each time: pods "checkout-v2-x7d5k" is
// forbidden.
func withoutPod(message string) string {
	if rest, ok := strings.CutPrefix(message, `pods "`); ok {
		if _, rest, ok = strings.Cut(rest, `" `); ok {
			return "a pod " + rest
		}
	}
	return message
}

func (r *Reader) event(o *corev1.Event) *event {
	e := &event{ObjectMeta: identified(o), at: o.LastTimestamp.Time}
	if o.EventTime.After(e.at) {
		e.at = o.EventTime.Time
	}
	if o.Series != nil && o.Series.LastObservedTime.After(e.at) {
		e.at = o.Series.LastObservedTime.Time
	}
	reason := map[string]rollout.PodReason{"FailedMount": rollout.FailedMount,
		"FailedAttachVolume": rollout.FailedMount, "FailedMapVolume": rollout.FailedMount,
		"FailedCreatePodSandBox": rollout.FailedCreatePodSandBox}[o.Reason]
	if reason != "" {
		e.pod = types.UID(strings.Clone(string(o.InvolvedObject.UID)))
		e.problem = r.problem(reason, o.Message)
	}
	return e
}

func (r *Reader) pod(o *corev1.Pod) *pod {
	p := &pod{ObjectMeta: identified(o), owner: ownerOf(o),
		over: o.DeletionTimestamp != nil || o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed}
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
			c.Reason == corev1.PodReasonUnschedulable {
			p.problem = r.problem(rollout.Unschedulable, c.Message)
			return p
		}
	}
	p.starting = o.Status.Phase == corev1.PodPending && o.Spec.NodeName != ""
	for _, statuses := range [][]corev1.ContainerStatus{o.Status.InitContainerStatuses, o.Status.ContainerStatuses} {
		for i := range statuses {
			r.container(p, &statuses[i])
		}
	}
	p.starting = p.starting && p.problem == nil && p.crashed == nil
	return p
}

// container notes what keeps a container from running, unless another one's is noted already.
func (r *Reader) container(p *pod, c *corev1.ContainerStatus) {
	if w := c.State.Waiting; w != nil && p.problem == nil {
		if reason := waitingFor(w.Reason); reason != "" {
			message := w.Message
			if reason == rollout.CrashLoopBackOff {
				message = r.lastWords(c.LastTerminationState.Terminated)
			}
			p.problem = r.problem(reason, reduced(message))
		}
	}
	ended, restarted := c.LastTerminationState.Terminated, time.Time{}
	switch {
	case c.State.Terminated != nil && c.State.Terminated.ExitCode != 0:
		ended, restarted = c.State.Terminated, c.State.Terminated.FinishedAt.Time
	case c.State.Running != nil:
		restarted = c.State.Running.StartedAt.Time
	}
	if ended != nil && ended.ExitCode != 0 && !restarted.IsZero() && c.RestartCount > 0 && p.crashed == nil {
		p.crashed, p.restarted = r.problem(rollout.CrashLoopBackOff, r.lastWords(ended)), restarted
	}
}

// waitingFor is the reason by the name that it keeps: a kubelet alternates between that of a failure and that of the
// pause after it. "": it starts.
func waitingFor(reason string) rollout.PodReason {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
		"RegistryUnavailable", "SignatureValidationFailed":
		return rollout.ImagePullBackOff
	case "CrashLoopBackOff":
		return rollout.CrashLoopBackOff
	case "CreateContainerConfigError":
		return rollout.CreateContainerConfigError
	case "CreateContainerError", "RunContainerError", "PreCreateHookError", "PreStartHookError", "PostStartHookError":
		return rollout.CreateContainerError
	}
	return ""
}

// lastWords say how a container ended: its exit code or signal, and the last line of its own message.
func (r *Reader) lastWords(t *corev1.ContainerStateTerminated) string {
	if t == nil {
		return ""
	}
	text := fmt.Sprintf("exit code %d", t.ExitCode)
	switch {
	case t.Signal != 0:
		text = fmt.Sprintf("signal %d", t.Signal)
	case t.Reason != "" && t.Reason != "Error":
		text = t.Reason + ", " + text
	}
	lines := strings.Split(strings.TrimSpace(r.masker.Text(t.Message)), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		text += ": " + last
	}
	return text
}

// reduced leaves out what a kubelet puts before the words that say what is wrong.
func reduced(message string) string {
	if _, rest, ok := strings.Cut(message, ": ErrImagePull: "); ok &&
		strings.HasPrefix(message, "Back-off pulling image ") {
		message = rest
	}
	if rest, ok := strings.CutPrefix(message, "rpc error: code = "); ok {
		if _, desc, ok := strings.Cut(rest, " desc = "); ok {
			message = desc
		}
	}
	return message
}
