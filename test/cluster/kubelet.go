package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Image is what a container image holds: a program of this machine.
type Image struct {
	// Command is run where the container has none of its own; the container's args follow it.
	Command []string
	// Env is in its environment before the container's.
	Env []string
	// Root is the folder with the files of the image. The program sees those and its volumes alone, and runs as the
	// user that the pod names. "": it is a program of this machine, as the user of the test.
	Root string
}

// nodeName is the one node, and nodeCPU how many of its cores a pod may ask for.
const (
	nodeName = "node"
	nodeCPU  = "64"
)

// addresses is how many pods of all nodes got an address.
var addresses atomic.Int32

// backOff is how long a container that ended waits before it is started again; it doubles, up to 16 times that.
const backOff = 500 * time.Millisecond

// kubelet is a node, and the scheduler that gives it every pod but one that asks for more cores than it has. A
// container is a process of this machine: its command, args and environment (values, and fields, ConfigMaps and Secrets
// that they refer to) are the manifest's. A volume is a folder of this machine, and where a variable or an argument
// names a path that it is mounted at, the process gets the folder's; for an image with files of its own it is there. It
// asks the probes that are HTTP. There are no limits and no isolation.
type kubelet struct {
	t      testing.TB
	client dynamic.Interface // the typed clients are two hundred packages more to compile and to lint
	dir    string

	mu     sync.Mutex
	images map[string]Image
	pods   map[types.UID]*pod
	all    sync.WaitGroup
	ended  bool
}

// StartKubelet runs a node until the test ends. Images are by the names that manifests give them; a pod of any other
// image is ErrImagePull. logs is the folder with what containers print, in files such as namespace_pod_container.log.
// removeImage takes an image away from containers that start later.
func StartKubelet(t testing.TB, config *rest.Config, images map[string]Image) (logs string,
	removeImage func(name string)) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	k := &kubelet{t: t, client: client, dir: t.TempDir(), images: maps.Clone(images), pods: map[types.UID]*pod{}}
	k.register(t.Context())
	ctx, cancel := context.WithCancel(context.Background())
	pods := k.in("pods", "")
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return pods.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return pods.Watch(ctx, o)
			},
		},
		ObjectType: &unstructured.Unstructured{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { k.changed(ctx, k.pod(o)) },
			UpdateFunc: func(_, o any) { k.changed(ctx, k.pod(o)) },
			DeleteFunc: func(o any) {
				if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
					o = gone.Obj
				}
				k.deleted(k.pod(o))
			},
		},
	})
	var watching sync.WaitGroup
	watching.Go(func() { informer.RunWithContext(ctx) })
	t.Cleanup(func() {
		k.mu.Lock()
		k.ended = true
		for _, p := range k.pods {
			p.cancel()
		}
		k.mu.Unlock()
		k.all.Wait()
		cancel()
		watching.Wait()
	})
	return k.dir, func(name string) {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.images, name)
	}
}

func (k *kubelet) register(ctx context.Context) {
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(nodeCPU),
		corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("1000")}
	nodes := k.in("nodes", "")
	_, err := nodes.Create(ctx, k.object(&corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: nodeName}}), metav1.CreateOptions{})
	require.NoError(k.t, err)
	status := corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}}
	patch, err := json.Marshal(map[string]any{"status": status})
	require.NoError(k.t, err)
	_, err = nodes.Patch(ctx, nodeName, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	require.NoError(k.t, err)
}

// in gives a resource of the core API in a namespace; "": in all, or in none.
func (k *kubelet) in(resource, namespace string) dynamic.ResourceInterface {
	of := k.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource})
	if namespace == "" {
		return of
	}
	return of.Namespace(namespace)
}

// pod is an object of the API server as a pod.
func (k *kubelet) pod(o any) *corev1.Pod {
	out := &corev1.Pod{}
	require.NoError(k.t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.(*unstructured.Unstructured).Object,
		out))
	return out
}

func (k *kubelet) object(o any) *unstructured.Unstructured {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	require.NoError(k.t, err)
	return &unstructured.Unstructured{Object: fields}
}

// changed schedules a pod, starts it, or has it end.
func (k *kubelet) changed(ctx context.Context, p *corev1.Pod) {
	if p.Spec.NodeName == "" {
		if why := noRoom(p); why != "" {
			k.refuse(ctx, p, why)
		} else if p.DeletionTimestamp == nil {
			_, err := k.in("pods", p.Namespace).Create(ctx,
				k.object(&corev1.Binding{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
					ObjectMeta: metav1.ObjectMeta{Name: p.Name, UID: p.UID},
					Target:     corev1.ObjectReference{Kind: "Node", Name: nodeName}}), metav1.CreateOptions{},
				"binding")
			k.note(ctx, "bind", p, err)
		}
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.pods[p.UID]
	switch {
	case k.ended:
	case known == nil && p.DeletionTimestamp == nil:
		own, cancel := context.WithCancel(ctx)
		n := addresses.Add(1)
		ip := fmt.Sprintf("127.1.%d.%d", n/250, n%250+1)
		known = &pod{kubelet: k, object: p, cancel: cancel, ip: ip}
		k.pods[p.UID] = known
		k.all.Go(func() { known.run(own) })
	case known == nil: // it never ran here
		k.all.Go(func() { k.remove(ctx, p) })
	case p.DeletionTimestamp != nil:
		known.cancel()
	}
}

// noRoom says, in the words of Kubernetes' own scheduler, why the node does not take a pod; "": it does. Pods that are
// there take no room.
func noRoom(p *corev1.Pod) string {
	cpu := resource.Quantity{}
	for _, c := range p.Spec.Containers {
		cpu.Add(*c.Resources.Requests.Cpu())
	}
	if cpu.Cmp(resource.MustParse(nodeCPU)) > 0 {
		return "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 Preemption is " +
			"not helpful for scheduling."
	}
	return ""
}

// refuse says of a pod that no node takes it, as a scheduler does.
func (k *kubelet) refuse(ctx context.Context, p *corev1.Pod, why string) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return
		}
	}
	patch, err := json.Marshal(map[string]any{"status": corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: why}}}})
	if err == nil {
		_, err = k.in("pods", p.Namespace).Patch(ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{},
			"status")
	}
	k.note(ctx, "refuse", p, err)
}

func (k *kubelet) deleted(p *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known := k.pods[p.UID]; known != nil {
		known.cancel()
		delete(k.pods, p.UID)
	}
}

// remove takes a pod that has ended out of the cluster.
func (k *kubelet) remove(ctx context.Context, p *corev1.Pod) {
	now := int64(0)
	err := k.in("pods", p.Namespace).Delete(context.WithoutCancel(ctx), p.Name,
		metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &p.UID}})
	k.note(ctx, "delete", p, err)
}

// note logs what the API server refused, unless the pod is gone or something else changed it.
func (k *kubelet) note(ctx context.Context, doing string, p *corev1.Pod, err error) {
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		k.t.Logf("kubelet: %s %s/%s: %v", doing, p.Namespace, p.Name, err)
	}
}

// pod is a pod that runs.
type pod struct {
	*kubelet
	object *corev1.Pod
	cancel context.CancelFunc
	ip     string // of its own, on loopback

	mu         sync.Mutex
	containers []corev1.ContainerStatus
}

func (p *pod) run(ctx context.Context) {
	for _, c := range p.object.Spec.Containers {
		p.containers = append(p.containers, corev1.ContainerStatus{Name: c.Name, Image: c.Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}})
	}
	var all sync.WaitGroup
	for i := range p.object.Spec.Containers {
		all.Go(func() { p.container(ctx, i) })
	}
	all.Wait()
	p.kubelet.mu.Lock()
	ended := p.ended // with the test: the cluster goes too
	p.kubelet.mu.Unlock()
	if !ended {
		p.remove(ctx, p.object)
	}
}

// set changes a container's status, and the pod's with it.
func (p *pod) set(ctx context.Context, i int, state corev1.ContainerState, ready bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.containers[i]
	if t := c.State.Terminated; t != nil {
		c.LastTerminationState = c.State
	}
	if state.Running != nil && c.State.Running == nil && c.LastTerminationState.Terminated != nil {
		c.RestartCount++
	}
	c.State, c.Ready, c.Started = state, ready, &ready
	status := corev1.PodStatus{Phase: corev1.PodPending, PodIP: p.ip, HostIP: "127.0.0.1",
		ContainerStatuses: p.containers}
	all := true
	for _, c := range p.containers {
		all = all && c.Ready
		if c.State.Running != nil || c.LastTerminationState.Terminated != nil {
			status.Phase = corev1.PodRunning
		}
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}
		if kind != corev1.PodInitialized && !all {
			condition.Status, condition.Reason = corev1.ConditionFalse, "ContainersNotReady"
		}
		status.Conditions = append(status.Conditions, condition)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.object.UID}, "status": status})
	if err == nil {
		_, err = p.in("pods", p.object.Namespace).Patch(ctx, p.object.Name, types.MergePatchType, patch,
			metav1.PatchOptions{}, "status")
	}
	p.note(ctx, "status of", p.object, err)
}

// container runs one container again and again until the pod is to end.
func (p *pod) container(ctx context.Context, i int) {
	for wait := backOff; ; wait = min(2*wait, 16*backOff) {
		code, problem := p.once(ctx, i)
		if ctx.Err() != nil {
			return
		}
		if problem == nil {
			p.set(ctx, i, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(code),
				Reason: "Error", FinishedAt: metav1.Now()}}, false)
			problem = &waiting{"CrashLoopBackOff",
				fmt.Errorf("back-off %s restarting failed container=%s", wait, p.object.Spec.Containers[i].Name)}
		}
		p.set(ctx, i, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: problem.reason,
			Message: problem.Error()}}, false)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// waiting is why a container does not run.
type waiting struct {
	reason string
	error
}

// once runs a container's process to its end, which is asked for once the pod is to end.
func (p *pod) once(ctx context.Context, i int) (code int, problem *waiting) {
	c := p.object.Spec.Containers[i]
	p.kubelet.mu.Lock()
	image, there := p.images[c.Image]
	p.kubelet.mu.Unlock()
	switch {
	case !there:
		return 0, &waiting{"ErrImagePull", fmt.Errorf("no image %q on this machine", c.Image)}
	case c.StartupProbe != nil || len(p.object.Spec.InitContainers) > 0:
		return 0, &waiting{"CreateContainerConfigError",
			errors.New("this kubelet has no startup probes and no init containers")}
	}
	env, err := p.environment(ctx, c, image.Root == "")
	if err != nil {
		return 0, &waiting{"CreateContainerConfigError", err}
	}
	mounted, err := p.mounts(ctx, c, image.Root)
	if err != nil {
		return 0, &waiting{"CreateContainerConfigError", err}
	}
	argv := slices.Concat(c.Command, c.Args)
	if len(c.Command) == 0 {
		argv = slices.Concat(image.Command, c.Args)
	}
	for i := range argv {
		argv[i] = mounted.Replace(expand(argv[i], env))
	}
	out, err := os.OpenFile(filepath.Join(p.dir, p.object.Namespace+"_"+p.object.Name+"_"+c.Name+".log"),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, &waiting{"CreateContainerError", err}
	}
	defer func() { _ = out.Close() }()
	grace := 30 * time.Second
	if seconds := p.object.Spec.TerminationGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if image.Root != "" {
		user, group := p.user()
		cmd.Dir = "/"
		cmd.SysProcAttr.Chroot, cmd.SysProcAttr.Credential = image.Root,
			&syscall.Credential{Uid: uint32(user), Gid: uint32(group)}
	}
	cmd.Env = image.Env
	for _, name := range slices.Sorted(maps.Keys(env)) {
		cmd.Env = append(cmd.Env, name+"="+mounted.Replace(env[name]))
	}
	if err := cmd.Start(); err != nil {
		return 0, &waiting{"CreateContainerError", err}
	}
	p.set(ctx, i, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		c.ReadinessProbe == nil)
	probing, stop := context.WithCancel(ctx)
	var probes sync.WaitGroup
	probes.Go(func() { p.probe(probing, c, c.ReadinessProbe, func(ok bool) { p.ready(probing, i, ok) }) })
	probes.Go(func() {
		p.probe(probing, c, c.LivenessProbe, func(ok bool) {
			if !ok {
				_ = cmd.Process.Kill()
			}
		})
	})
	_ = cmd.Wait() // the exit code says it
	stop()
	probes.Wait()
	return cmd.ProcessState.ExitCode(), nil
}

// ready notes what the readiness probe found.
func (p *pod) ready(ctx context.Context, i int, ok bool) {
	p.mu.Lock()
	state, was := p.containers[i].State, p.containers[i].Ready
	p.mu.Unlock()
	if was != ok {
		p.set(ctx, i, state, ok)
	}
}

// probe asks an HTTP probe until the context ends, and tells each answer that counts. That is a success, and as many
// failures in a row as the probe's threshold.
func (p *pod) probe(ctx context.Context, c corev1.Container, probe *corev1.Probe, tell func(ok bool)) {
	if probe == nil || probe.HTTPGet == nil {
		return
	}
	port := probe.HTTPGet.Port.IntVal
	for _, named := range c.Ports {
		if named.Name == probe.HTTPGet.Port.StrVal {
			port = named.ContainerPort
		}
	}
	url := fmt.Sprintf("http://%s:%d%s", p.ip, port, probe.HTTPGet.Path)
	for failures := int32(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(probe.PeriodSeconds) * time.Second / 5): // tests wait for it
		}
		if healthy(url) == nil {
			failures = 0
			tell(true)
		} else if failures++; failures >= probe.FailureThreshold && ctx.Err() == nil {
			tell(false)
		}
	}
}
