package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// podsOf is what the cluster says of the pods of v2.
func podsOf(ready int, problems ...rollout.PodProblem) change {
	return inCluster(rollout.Cluster{At: noon, Versions: []rollout.VersionPods{{BuildID: id("v2"), Desired: 2, Ready: ready, Pods: 2, Problems: problems}}})
}

func inCluster(c rollout.Cluster) change { return func(g *given) { g.Cluster = &c } }

func noImage(pods int) rollout.PodProblem {
	return rollout.PodProblem{Reason: rollout.ImagePullBackOff, Pods: pods, Message: "tag v2 not found"}
}

func crashes(pods int) rollout.PodProblem {
	return rollout.PodProblem{Reason: rollout.CrashLoopBackOff, Pods: pods, Message: "exit code 3"}
}

// Why workers do not come is said with what the cluster knows, where that is known, and nothing else changes by it.
func TestPodsThatDoNotCome(t *testing.T) {
	const (
		yet    = "version v2 has not registered with Temporal yet"
		unseen = ": Temporal knows no worker of it under any name: look whether its pods run, and whether they reach Temporal"
	)
	lost := func(g *given) { g.Observation.Missing = &rollout.Missing{} }
	for name, c := range map[string]struct {
		given change
		want  string
	}{
		"no cluster":            {none, yet},
		"not known":             {inCluster(rollout.Cluster{Problem: "no answer"}), yet},
		"of an old answer":      {all(podsOf(0, noImage(2)), func(g *given) { g.Cluster.Problem = "no answer" }), yet},
		"another version":       {inCluster(rollout.Cluster{At: noon, Versions: []rollout.VersionPods{{BuildID: id("v1"), Problems: []rollout.PodProblem{noImage(1)}}}}), yet},
		"they start":            {podsOf(0), yet},
		"no image":              {podsOf(0, noImage(2)), yet + ": 2 of 2 pods: ImagePullBackOff: tag v2 not found"},
		"no image, and no name": {all(lost, podsOf(0, noImage(2))), yet + ": 2 of 2 pods: ImagePullBackOff: tag v2 not found"},
		"two problems":          {podsOf(0, noImage(1), crashes(1)), yet + ": 1 of 2 pods: ImagePullBackOff: tag v2 not found; 1 of 2 pods: CrashLoopBackOff: exit code 3"},
		"all run":               {podsOf(2), yet + ": 2 of 2 pods are ready"},
		"nobody is known":       {lost, yet + unseen},
		"unversioned": {all(podsOf(2), func(g *given) { g.Observation.Missing = &rollout.Missing{Unversioned: []string{"orders"}} }),
			yet + ": its pods poll task queue orders without versioning: let them turn it on, with TEMPORAL_DEPLOYMENT_NAME and TEMPORAL_WORKER_BUILD_ID of their environment. 2 of 2 pods are ready"},
		"too late":       {all(podsOf(0, noImage(2)), createdAgo("v2", time.Hour, time.Hour)), yet + ": 2 of 2 pods: ImagePullBackOff: tag v2 not found (for longer than 10m0s: look at its pods)"},
		"it polls":       {all(up("v2"), noPollers("v2"), podsOf(0, crashes(2))), "no worker of v2 polled the workflow task queue orders in the last 1m30s: 2 of 2 pods: CrashLoopBackOff: exit code 3"},
		"not in Git yet": {podsOf(0, noImage(2)), yet + ": 2 of 2 pods: ImagePullBackOff: tag v2 not found"},
	} {
		t.Run(name, func(t *testing.T) {
			without := of(wants("v2"), inGit("v2"), c.given)
			p := Look(without).Propose()
			require.Equal(t, rollout.WaitingForPollers, p.State.Reason)
			require.Equal(t, c.want, named(p.State.Message))
			without.Cluster = nil
			bare := Look(without).Propose()
			p.State.Message, bare.State.Message = "", ""
			require.Equal(t, bare, p, "it explains, and decides nothing")
		})
	}
}

// What is committed of pods are the reasons. Each is there once, however often it comes and goes. Those that are gone
// for an hour are left out.
func TestPodsThatComeAndGo(t *testing.T) {
	s := of(wants("v2"), inGit("v2"))
	var commits []string
	key := ""
	after := func(since time.Duration, changes ...change) {
		t.Helper()
		g := &given{Snapshot: s, rec: &s.Record.Routing.Spec}
		for _, c := range changes {
			c(g)
		}
		g.Now = noon.Add(since)
		g.Observation.At = g.Now
		plan := decide(t, g.Snapshot, allowed)
		require.Equal(t, rollout.WaitingForPollers, rollout.Reason(plan.Status.Conditions[0].Reason))
		now := render.TransitionKey(plan.Status)
		if now == key {
			return
		}
		key = now
		s.Record.Status = &v1alpha1.WorkerDeployment{Status: plan.Status}
		said := "-"
		if p := plan.Status.Pods; p != nil {
			said = strings.Join(p.Reasons, " ")
			require.Equal(t, noon.Add(since), p.Since.Time)
		}
		commits = append(commits, said)
	}
	s.Spec.Spec.ProgressDeadlineSeconds = new(int32)
	*s.Spec.Spec.ProgressDeadlineSeconds = 1 << 30 // it is not this that makes commits
	after(0, podsOf(0))
	require.Equal(t, []string{"-"}, commits)
	for i := range 50 { // fifty pods that come and go, more or fewer of them
		after(time.Duration(i)*time.Minute, podsOf(0, noImage(1+i%2)))
		after(time.Duration(i)*time.Minute, podsOf(0))
		after(time.Duration(i)*time.Minute, inCluster(rollout.Cluster{Problem: "away"}))
	}
	require.Equal(t, []string{"-", "ImagePullBackOff"}, commits)
	for i := range 50 {
		after(time.Duration(i)*time.Minute, podsOf(0, crashes(1)))
		after(time.Duration(i)*time.Minute, podsOf(0, noImage(1), crashes(1)))
		after(time.Duration(i)*time.Minute, podsOf(2))
		after(time.Duration(i)*time.Minute, podsOf(1))
	}
	require.Equal(t, []string{"CrashLoopBackOff ImagePullBackOff", "CrashLoopBackOff ImagePullBackOff Running"}, commits[2:])
	after(59*time.Minute, podsOf(2))
	require.Len(t, commits, 4)
	after(60*time.Minute, podsOf(2))
	require.Equal(t, []string{"Running"}, commits[4:], "what was gone for an hour is left out")
	after(3*time.Hour, podsOf(2))
	require.Len(t, commits, 5)
	after(3*time.Hour, func(g *given) { g.Cluster = nil })
	require.Equal(t, []string{"-"}, commits[5:], "the bot reads no cluster any more")
}

// A status tells of pods only while their workers are waited for, and only of the target's.
func TestPodsOfAnotherTarget(t *testing.T) {
	s := of(wants("v2"), inGit("v2"), podsOf(0, noImage(2)))
	s.Record.Status = &v1alpha1.WorkerDeployment{Status: &v1alpha1.WorkerDeploymentStatus{TargetVersion: &v1alpha1.VersionStatus{BuildID: id("v1")},
		Pods: &v1alpha1.PodsStatus{Reasons: []string{"Unschedulable"}, Since: stamp(noon)}}}
	require.Equal(t, []string{"ImagePullBackOff"}, decide(t, s, allowed).Status.Pods.Reasons)
	s.Record.Status.Status.TargetVersion.BuildID = id("v2")
	require.Equal(t, []string{"ImagePullBackOff", "Unschedulable"}, decide(t, s, allowed).Status.Pods.Reasons)
	require.Nil(t, decide(t, of(podsOf(0, noImage(2))), allowed).Status.Pods, "it is complete")
	require.Nil(t, decide(t, of(candidate(), podsOf(0, noImage(2))), allowed).Status.Pods, "its workers are there")
}
