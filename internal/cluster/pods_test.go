package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/internal/mask"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// known is a namespace with objects, as a Reader keeps them.
func known(t *testing.T, documents string) *namespace {
	t.Helper()
	masker, err := mask.New()
	require.NoError(t, err)
	r := &Reader{masker: masker}
	n := &namespace{name: "shop"}
	all := map[string]cache.Indexer{}
	for i, s := range selections() {
		index := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, s.indexers)
		all[[]string{"Deployment", "ReplicaSet", "Pod", "Event"}[i]] = index
	}
	n.stores = stores{all["Deployment"], all["ReplicaSet"], all["Pod"], all["Event"]}
	for _, text := range strings.Split(documents, "\n---\n") {
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object), text)
		object.SetNamespace("shop")
		kept, err := r.strip(object)
		require.NoError(t, err)
		again, err := r.strip(kept)
		require.NoError(t, err)
		require.Same(t, kept, again, "what was stripped stays as it is")
		require.NoError(t, all[object.GetKind()].Add(kept))
	}
	return n
}

// deployed is a Deployment with its ReplicaSet.
const deployed = `
kind: Deployment
metadata: {name: checkout-v2, uid: d, labels: {temporal.io/build-id: v2}}
spec: {replicas: 2}
status: {readyReplicas: 1, availableReplicas: 1}
---
kind: ReplicaSet
metadata: {name: checkout-v2-1, uid: s, ownerReferences: [{kind: Deployment, name: checkout-v2, uid: d, controller: true}]}
---
`

// inState is a pod of it with a status.
func inState(name, status string) string {
	return "kind: Pod\nmetadata: {name: " + name + ", uid: " + name + ", ownerReferences: [{kind: ReplicaSet, name: checkout-v2-1, uid: s, controller: true}]}\n" +
		"spec: {nodeName: node}\nstatus: " + status
}

func waits(reason, message string) string {
	return `{phase: Pending, containerStatuses: [{state: {waiting: {reason: ` + reason + `, message: '` + message + `'}}}]}`
}

func TestPodsOf(t *testing.T) {
	const secret = "AKIAABCDEFGHIJKLMNOP"
	two := func(a, b string) string { return deployed + inState("a", a) + "\n---\n" + inState("b", b) }
	ready := `{phase: Running, containerStatuses: [{ready: true, state: {running: {startedAt: "2026-03-01T10:00:00Z"}}}]}`
	problem := func(reason rollout.PodReason, pods int, message string) []rollout.PodProblem {
		return []rollout.PodProblem{{Reason: reason, Pods: pods, Message: message}}
	}
	for name, c := range map[string]struct {
		objects string
		want    rollout.VersionPods // with the numbers of deployed, unless it has others
		text    string
	}{
		"nothing is applied": {
			"kind: Deployment\nmetadata: {name: other, uid: d}", rollout.VersionPods{Problems: problem(rollout.NoDeployment, 0,
				"checkout-v2 is not in namespace shop, or not with the label temporal.io/build-id: v2")},
			"NoDeployment: checkout-v2 is not in namespace shop, or not with the label temporal.io/build-id: v2"},
		"a Deployment of another version": {
			"kind: Deployment\nmetadata: {name: checkout-v2, uid: d, labels: {temporal.io/build-id: v1}}", rollout.VersionPods{Problems: problem(rollout.NoDeployment, 0,
				"checkout-v2 is not in namespace shop, or not with the label temporal.io/build-id: v2")},
			"NoDeployment: checkout-v2 is not in namespace shop, or not with the label temporal.io/build-id: v2"},
		"pods start": {two(waits("ContainerCreating", ""), `{phase: Pending}`), rollout.VersionPods{Desired: 2, Ready: 1, Available: 1, Pods: 2}, ""},
		"replicas left out": {"kind: Deployment\nmetadata: {name: checkout-v2, uid: d, labels: {temporal.io/build-id: v2}}\nstatus: {readyReplicas: 1}",
			rollout.VersionPods{Desired: 1, Ready: 1}, "1 of 1 pods are ready"},
		"an image that is not there": {
			two(waits("ErrImagePull", `rpc error: code = NotFound desc = tag v2.3.1 not found`),
				waits("ImagePullBackOff", `Back-off pulling image "shop:v2.3.1": ErrImagePull: rpc error: code = NotFound desc = tag v2.3.1 not found`)),
			rollout.VersionPods{Desired: 2, Ready: 1, Available: 1, Pods: 2, Problems: problem(rollout.ImagePullBackOff, 2, "tag v2.3.1 not found")},
			"2 of 2 pods: ImagePullBackOff: tag v2.3.1 not found"},
		"an image that has no name": {two(waits("InvalidImageName", "couldn''t parse it"), ready),
			rollout.VersionPods{Desired: 2, Ready: 1, Available: 1, Pods: 2, Problems: problem(rollout.ImagePullBackOff, 1, "couldn't parse it")},
			"1 of 2 pods: ImagePullBackOff: couldn't parse it"},
		"a Secret that is not there": {two(waits("CreateContainerConfigError", `secret "keys" not found`), ready),
			rollout.VersionPods{Desired: 2, Ready: 1, Available: 1, Pods: 2, Problems: problem(rollout.CreateContainerConfigError, 1, `secret "keys" not found`)},
			`1 of 2 pods: CreateContainerConfigError: secret "keys" not found`},
		"a program that is not there": {two(waits("RunContainerError", `exec: "worker": not found`), ready),
			rollout.VersionPods{Desired: 2, Ready: 1, Available: 1, Pods: 2, Problems: problem(rollout.CreateContainerError, 1, `exec: "worker": not found`)},
			`1 of 2 pods: CreateContainerError: exec: "worker": not found`},
		"a crash loop": {
			two(`{phase: Running, containerStatuses: [{restartCount: 4, state: {waiting: {reason: CrashLoopBackOff, message: back-off 40s}},
  lastState: {terminated: {exitCode: 3, reason: Error, message: "panic: boom\ngoroutine 1\nno queue\n"}}}]}`,
				`{phase: Running, containerStatuses: [{restartCount: 4, state: {running: {startedAt: "2026-03-01T11:50:01Z"}},
  lastState: {terminated: {exitCode: 3, reason: Error, message: "no queue"}}}]}`),
			rollout.VersionPods{Desired: 2, Ready: 1, Available: 1, Pods: 2, Problems: problem(rollout.CrashLoopBackOff, 2, "exit code 3: no queue")},
			"2 of 2 pods: CrashLoopBackOff: exit code 3: no queue"},
		"a crash loop between two starts": {
			two(`{phase: Running, containerStatuses: [{restartCount: 1, state: {terminated: {exitCode: 137, reason: OOMKilled, finishedAt: "2026-03-01T11:59:59Z"}}}]}`, ready),
			rollout.VersionPods{Desired: 2, Ready: 1, Available: 1, Pods: 2, Problems: problem(rollout.CrashLoopBackOff, 1, "OOMKilled, exit code 137")},
			"1 of 2 pods: CrashLoopBackOff: OOMKilled, exit code 137"},
		"a crash long ago": {
			two(`{phase: Running, containerStatuses: [{restartCount: 1, state: {running: {startedAt: "2026-03-01T11:50:00Z"}}, lastState: {terminated: {exitCode: 3}}}]}`, ready),
			rollout.VersionPods{Desired: 2, Ready: 1, Available: 1, Pods: 2}, ""},
		"an end that is not its own": {
			two(`{phase: Running, containerStatuses: [{restartCount: 1, state: {running: {startedAt: "2026-03-01T11:59:00Z"}}, lastState: {terminated: {exitCode: 0}}}]}`, ready),
			rollout.VersionPods{Desired: 2, Ready: 1, Available: 1, Pods: 2}, ""},
		"an init container": {
			two(`{phase: Pending, initContainerStatuses: [{restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {signal: 9, exitCode: 137}}}],
  containerStatuses: [{state: {waiting: {reason: PodInitializing}}}]}`, ready),
			rollout.VersionPods{Desired: 2, Ready: 1, Available: 1, Pods: 2, Problems: problem(rollout.CrashLoopBackOff, 1, "signal 9")},
			"1 of 2 pods: CrashLoopBackOff: signal 9"},
		"no room": {two(`{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: 3 Insufficient cpu."}]}`, ready),
			rollout.VersionPods{Desired: 2, Ready: 1, Available: 1, Pods: 2, Problems: problem(rollout.Unschedulable, 1, "0/3 nodes are available: 3 Insufficient cpu.")},
			"1 of 2 pods: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."},
		"no volume": {
			two(waits("ContainerCreating", ""), ready) + `
---
kind: Event
metadata: {name: e1}
involvedObject: {kind: Pod, uid: a}
reason: FailedMount
message: 'MountVolume.SetUp failed for volume "keys" : secret "keys" not found'
lastTimestamp: "2026-03-01T11:59:00Z"
---
kind: Event
metadata: {name: e2}
involvedObject: {kind: Pod, uid: a}
reason: FailedAttachVolume
message: an older one
lastTimestamp: "2026-03-01T11:58:00Z"
---
kind: Event
metadata: {name: e3}
involvedObject: {kind: Pod, uid: b}
reason: FailedMount
message: of a pod that runs meanwhile
lastTimestamp: "2026-03-01T11:59:00Z"
---
kind: Event
metadata: {name: e4}
involvedObject: {kind: Pod, uid: a}
reason: DNSConfigForming
message: nothing that keeps it from starting
eventTime: "2026-03-01T11:59:30.000000Z"`,
			rollout.VersionPods{Desired: 2, Ready: 1, Available: 1, Pods: 2, Problems: problem(rollout.FailedMount, 1, `MountVolume.SetUp failed for volume "keys" : secret "keys" not found`)},
			`1 of 2 pods: FailedMount: MountVolume.SetUp failed for volume "keys" : secret "keys" not found`},
		"a quota": {
			strings.Replace(deployed, "controller: true}]}", `controller: true}]}
status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'pods "checkout-v2-1-x7d5k" is forbidden: exceeded quota: small'}]}`, 1) + inState("a", ready),
			rollout.VersionPods{Desired: 2, Ready: 1, Available: 1, Pods: 1, Problems: problem(rollout.FailedCreate, 0, "a pod is forbidden: exceeded quota: small")},
			"FailedCreate: a pod is forbidden: exceeded quota: small"},
		"a quota, as the Deployment has it": {
			"kind: Deployment\nmetadata: {name: checkout-v2, uid: d, labels: {temporal.io/build-id: v2}}\nstatus: {conditions: [{type: ReplicaFailure, status: 'True', message: no room}]}",
			rollout.VersionPods{Desired: 1, Problems: problem(rollout.FailedCreate, 0, "no room")}, "FailedCreate: no room"},
		"pods that end count no more": {
			strings.ReplaceAll(two(waits("ErrImagePull", "x"), `{phase: Failed, reason: Evicted}`), "name: a, uid: a,", `name: a, uid: a, deletionTimestamp: "2026-03-01T11:59:00Z",`),
			rollout.VersionPods{Desired: 2, Ready: 1, Available: 1}, ""},
		"two reasons": {
			two(waits("ErrImagePull", "x"), waits("CreateContainerConfigError", "y")) + "\n---\n" + inState("c", waits("ErrImagePull", "x")) + "\n---\n" + inState("d", waits("ErrImagePull", "z")),
			rollout.VersionPods{Desired: 2, Ready: 1, Available: 1, Pods: 4, Problems: []rollout.PodProblem{{Reason: rollout.ImagePullBackOff, Pods: 3, Message: "x"},
				{Reason: rollout.CreateContainerConfigError, Pods: 1, Message: "y"}}},
			"3 of 4 pods: ImagePullBackOff: x; 1 of 4 pods: CreateContainerConfigError: y"},
		"texts of others": {
			two(waits("ErrImagePull", "a\u202eb\n\n token="+secret+" "+strings.Repeat("x", 400)), ready),
			rollout.VersionPods{Desired: 2, Ready: 1, Available: 1, Pods: 2, Problems: problem(rollout.ImagePullBackOff, 1, `a\u202eb token=*** `+strings.Repeat("x", 200-len(`a\u202eb token=*** `))+"…")}, "-"},
		"a secret in a container's last words": {
			two(`{phase: Running, containerStatuses: [{restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}},
  lastState: {terminated: {exitCode: 3, message: "cannot log in to postgres://worker:hunter2hunter2@db with `+secret+`"}}}]}`, ready),
			rollout.VersionPods{Desired: 2, Ready: 1, Available: 1, Pods: 2, Problems: problem(rollout.CrashLoopBackOff, 1, "exit code 3: cannot log in to postgres://worker:***@db with ***")}, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			got := known(t, c.objects).pods(rollout.VersionDeployments{BuildID: "v2", Deployments: []string{"checkout-v2"}}, noon)
			c.want.BuildID = "v2"
			require.Equal(t, c.want, got)
			if c.text != "-" {
				require.Equal(t, c.text, got.Text())
			}
		})
	}
}

// The pods of a version's pools are its own.
func TestPodsOfPools(t *testing.T) {
	n := known(t, deployed+inState("a", waits("ErrImagePull", "x"))+"\n---\nkind: Deployment\nmetadata: {name: checkout-v2-big, uid: e, labels: {temporal.io/build-id: v2}}\nspec: {replicas: 3}\nstatus: {readyReplicas: 3, availableReplicas: 2}")
	got := n.pods(rollout.VersionDeployments{BuildID: "v2", Deployments: []string{"checkout-v2", "checkout-v2-big", "checkout-v2-gone"}}, noon)
	require.Equal(t, rollout.VersionPods{BuildID: "v2", Desired: 5, Ready: 4, Available: 3, Pods: 1, Problems: []rollout.PodProblem{
		{Reason: rollout.NoDeployment, Message: "checkout-v2-gone is not in namespace shop, or not with the label temporal.io/build-id: v2"},
		{Reason: rollout.ImagePullBackOff, Pods: 1, Message: "x"},
	}}, got)
}
