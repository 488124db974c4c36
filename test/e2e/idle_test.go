package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// idle is how many worker deployments have nothing to do, over how many Temporal namespaces: one takes a hundred.
const (
	idle       = 200
	namespaces = 4
)

// Nothing to do means no commit: across processes without a cache, unrelated pushes, a comment in a policy, and a newer
// build of the bot.
func TestIdle(t *testing.T) {
	testneed.Long(t)
	w := newWorld(t)
	for i := range namespaces {
		_, err := server.Namespace(t.Context(), fmt.Sprintf("%s-%d", w.ns.Name(), i))
		require.NoError(t, err)
	}
	policy := "package rampart.rollout\n\nwarn contains {\"rule\": \"test.never\", \"msg\": \"never\"} if false\n"
	files := map[string]string{"rampart.yaml": crashConfig, "policies/own.rego": policy}
	for i := range idle {
		text := specText{name: fmt.Sprintf("w%03d", i), image: "unknown:v1", strategy: manual}.String()
		files[fmt.Sprintf("workers/w%03d.yaml", i)] = strings.ReplaceAll(text, "NAMESPACE", fmt.Sprintf("NAMESPACE-%d", i%namespaces))
	}
	w.push("two hundred", files)
	w.once()
	w.makeAllCurrent()
	w.eventually("all current", func() bool {
		w.once()
		return strings.Count(w.allStatus(), "  reason: RolloutComplete") == 4*idle
	})

	newer := filepath.Join(t.TempDir(), "rampart-newer")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w -buildid=newer", "-o", newer, "./cmd/rampart")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	pushes := map[int]func(){
		5:  func() { w.push("unrelated", map[string]string{"README.md": "hello\n"}) },
		10: func() { w.push("a comment", map[string]string{"policies/own.rego": "# Says nothing.\n" + policy}) },
	}
	quiet, slow, i := w.botCommits(), false, 0
	for tries := 0; i < 20; tries++ {
		require.Less(t, tries, 60, "most cycles could not read all of Temporal in time")
		if push := pushes[i]; push != nil {
			push()
			delete(pushes, i)
		}
		w.forgetCache()
		bin := binary
		if i >= 15 {
			bin = newer
		}
		out, err := w.command(bin, w.runArgs("--once")...).CombinedOutput()
		// A busy machine may be too slow to read Temporal in time: the bot commits that it was, and what it reads next.
		before := slow
		if slow = slowly(string(out)); !slow {
			require.NoError(t, err, "cycle %d: %s", i, out)
		}
		if slow || before {
			quiet = w.lateReadsSince(quiet)
			continue
		}
		require.Equal(t, quiet, w.botCommits(), "cycle %d", i)
		i++
	}
}

// lateReadsSince are the bot's commits. Those that came to the ones before may only tell that Temporal was read late.
func (w *world) lateReadsSince(before []string) []string {
	w.t.Helper()
	all := w.botCommits()
	for _, c := range strings.Fields(w.repo.Git("log", "--author=rampart", "--format=%H", fmt.Sprintf("-%d", len(all)-len(before)), w.branch)) {
		was, is := w.repo.Files(c+"^"), w.repo.Files(c)
		for _, path := range strings.Fields(w.repo.Git("show", "--format=", "--name-only", c)) {
			require.True(w.t, strings.HasSuffix(path, "/status.yaml") && strings.Contains(was[path]+is[path], "TemporalStateFetchFailed"),
				"commit %s changes %s", c, path)
		}
	}
	return all
}

// allStatus is all status files at the tip, one after the other.
func (w *world) allStatus() string {
	var b strings.Builder
	for path, text := range w.repo.Files(w.branch) {
		if strings.HasSuffix(path, "/status.yaml") {
			b.WriteString(text)
		}
	}
	return b.String()
}

// makeAllCurrent registers the one version of every worker deployment by polling for it, as a worker does, and makes it
// current, as a person does.
func (w *world) makeAllCurrent() {
	w.t.Helper()
	var wg errgroup.Group
	wg.SetLimit(8)
	for path, text := range w.repo.Files(w.branch) {
		if !strings.HasSuffix(path, "/routing.yaml") {
			continue
		}
		docs, _ := v1alpha1.Decode(path, []byte(text))
		r, ok := docs[0].Object.(*v1alpha1.Routing)
		require.True(w.t, ok, path)
		wg.Go(func() error { return w.makeCurrent(r.Spec) })
	}
	require.NoError(w.t, wg.Wait())
}

func (w *world) makeCurrent(r v1alpha1.RoutingSpec) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*patience)
	defer cancel()
	id := r.Versions[0].BuildID
	return temporalenv.Until(ctx, func(ctx context.Context) error {
		poll, stop := context.WithTimeout(ctx, 3*time.Second)
		defer stop()
		_, _ = w.ns.Service().PollWorkflowTaskQueue(poll, &workflowservice.PollWorkflowTaskQueueRequest{
			Namespace: r.TemporalNamespace, Identity: r.WorkerDeployment,
			TaskQueue: &taskqueuepb.TaskQueue{Name: r.WorkerDeployment, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
			DeploymentOptions: &deploymentpb.WorkerDeploymentOptions{DeploymentName: r.WorkerDeployment, BuildId: id,
				WorkerVersioningMode: enumspb.WORKER_VERSIONING_MODE_VERSIONED},
		})
		_, err := w.ns.Service().SetWorkerDeploymentCurrentVersion(ctx, &workflowservice.SetWorkerDeploymentCurrentVersionRequest{
			Namespace: r.TemporalNamespace, DeploymentName: r.WorkerDeployment, BuildId: id, Identity: "person"})
		return err
	})
}
