package cluster

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// job runs commands on one commit of the bot, as a pipeline does, until they end or a newer commit cancels them.
type job struct {
	commit   string
	cmd      *exec.Cmd
	out      strings.Builder // read once the job has ended
	ended    chan struct{}
	err      error // how it ended
	canceled atomic.Bool
}

// has says whether the job has ended by itself.
func (j *job) has() bool {
	select {
	case <-j.ended:
		return !j.canceled.Load()
	default:
		return false
	}
}

// jobs are those of all commits.
type jobs struct {
	mu  sync.Mutex
	all []*job
}

// jobs runs the commands of a block on each commit with output, until stop is called.
func (d *delivery) jobs(block string) (all *jobs, stop func()) {
	all, stopped, over := &jobs{}, make(chan struct{}), make(chan struct{})
	var running *job
	cancel := func() {
		if running != nil && !running.has() {
			running.canceled.Store(true)
			_ = syscall.Kill(-running.cmd.Process.Pid, syscall.SIGTERM) // it may have ended
			<-running.ended
		}
	}
	go func() {
		defer close(over)
		defer cancel()
		for {
			tip := d.host.repo.Tip("main")
			hasOutput := d.host.repo.Git("ls-tree", "--name-only", tip, "chart/output") != ""
			if hasOutput && (running == nil || running.commit != tip) {
				cancel()
				running = &job{commit: tip, cmd: d.command(block, tip), ended: make(chan struct{})}
				running.cmd.Stdout, running.cmd.Stderr = &running.out, &running.out
				running.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
				if running.err = running.cmd.Start(); running.err != nil {
					d.t.Error(running.err)
					return
				}
				go func(j *job) { j.err = j.cmd.Wait(); close(j.ended) }(running)
				all.mu.Lock()
				all.all = append(all.all, running)
				all.mu.Unlock()
			}
			select {
			case <-stopped:
				return
			case <-time.After(50 * time.Millisecond): // until it looks again
			}
		}
	}()
	stop = sync.OnceFunc(func() { close(stopped); <-over })
	d.t.Cleanup(func() {
		stop()
		for _, j := range all.all {
			if d.t.Failed() {
				d.t.Logf("job of %s, canceled: %t, error: %v\n%s", j.commit, j.canceled.Load(), j.err, &j.out)
			}
		}
	})
	return all, stop
}

// last waits until the job of the newest commit has ended by itself, and gives it.
func (d *delivery) last(all *jobs) *job {
	d.t.Helper()
	var last *job
	eventually(d.t, func() error {
		all.mu.Lock()
		defer all.mu.Unlock()
		if len(all.all) == 0 {
			return errors.New("no job yet")
		}
		if last = all.all[len(all.all)-1]; !last.has() || last.commit != d.host.repo.Tip("main") {
			return fmt.Errorf("%d jobs, of which the last one did not end by itself", len(all.all))
		}
		return nil
	})
	return last
}

// done holds that only jobs of commits whose status is ready ended well, and says how many a newer commit canceled.
func (d *delivery) done(all *jobs, stop func()) (canceled int) {
	d.t.Helper()
	stop()
	for _, j := range all.all {
		status := d.host.repo.Git("show", j.commit+":chart/output/payments/checkout/status.yaml")
		switch ready := strings.Contains(status, `rampart.dev/ready: "True"`); {
		case j.canceled.Load():
			canceled++
		case ready:
			require.NoError(d.t, j.err, &j.out)
		default:
			require.Error(d.t, j.err, &j.out)
		}
	}
	return canceled
}

// endsInTheRamp has Helm 3 wait in the ramp of v2: it succeeds, and the ramp goes on.
func (d *delivery) endsInTheRamp() {
	d.t.Helper()
	all, stop := d.jobs("$ helm3 upgrade --install workers chart --namespace payments --wait --timeout 1m")
	defer stop()
	d.steps = longStep
	d.push("worker:v2")
	d.summary("v2 v1 False Ramping")
	last := d.last(all)
	require.NoError(d.t, last.err, &last.out)
	d.summary("v2 v1 False Ramping")
}

// waitsForOld has Helm 4 wait while the image of v1 is gone, on which a workflow runs until terminate is called.
func (d *delivery) waitsForOld(terminate func()) {
	d.t.Helper()
	d.loses("v1", "2")
	upgrade := strings.Replace(documented(d.t, "console", " --wait "), "--timeout 30m", "--timeout 5s", 1)
	said, err := d.command(upgrade, "origin/main").CombinedOutput()
	require.Error(d.t, err)
	require.Contains(d.t, string(said), "Deployment/payments/checkout-v1")
	terminate()
	d.removed("v1")
}

// A chart holds the output. Helm 3 upgrades the release with each commit and kubectl waits; Helm 4 waits itself; Flux's
// helm-controller upgrades it and puts drift right. Versions that run stay when the release is uninstalled.
func TestHelm(t *testing.T) {
	t.Parallel()
	d := deliver(t, gitHTTP(t))
	files := map[string]string{}
	for _, name := range []string{"rampart.yaml", "chart/Chart.yaml", "chart/templates/output.yaml"} {
		files[name] = documented(t, "yaml", "# "+name+"\n")
	}
	d.commit("a chart that holds the output", files)
	d.push("worker:v1")
	d.bot((*delivery).byKustomize)

	waits := documented(t, "console", "chart --namespace payments\n$ kubectl wait")
	all, stop := d.jobs(strings.Replace(waits, "$ helm ", "$ helm3 ", 1))
	d.ready("v1")
	last := d.last(all)
	require.NoError(t, last.err, &last.out)
	require.Positive(t, d.done(all, stop))
	d.greets("v1")
	terminate := d.pinned()
	d.endsInTheRamp()

	all, stop = d.jobs(documented(t, "console", " --wait "))
	d.steps = oneStep
	d.push("worker:v2")
	d.ready("v2")
	d.push("worker:bad")
	d.summary("bad v2 False GateFailed")
	last = d.last(all)
	require.Error(t, last.err)
	require.Contains(t, last.out.String(), "gate Checkout failed", "Helm fails at once, and says why")
	d.push("worker:v2")
	d.ready("v2")
	d.server.await(t, "checkout-bad=0 checkout-v1=2 checkout-v2=2", "get", "-n", "payments", "deployments", "-o",
		"jsonpath={range .items[*]}{.metadata.name}={.spec.replicas} {end}") // what only failed releases had stays
	last = d.last(all)
	require.NoError(t, last.err, &last.out)
	require.Positive(t, d.done(all, stop))
	d.waitsForOld(terminate)

	require.Contains(t, d.commands("helm uninstall workers --namespace payments"), "[Deployment] checkout-v2")
	require.Equal(t, "v2", d.served())
	d.server.Kubectl(t, "", "delete", "-n", "payments", "--ignore-not-found", "deployment", "checkout-bad", "checkout-v1")

	d.server.Flux(t, "helm-controller")
	faster := strings.NewReplacer("https://git.example.com/platform/workers.git", d.host.reads,
		"interval: 1m", "interval: 1s", "interval: 10m", "interval: 3s")
	d.server.Kubectl(t, faster.Replace(documented(t, "yaml", "kind: HelmRelease")), "apply", "--server-side", "-f", "-")
	d.steps = longStep
	d.push("worker:v3")
	d.summary("v3 v2 False Ramping")
	eventually(t, func() error {
		want := "True 1.0.0+" + d.host.repo.Tip("main")[:12]
		got, err := d.server.kubectl(t, "", "get", "-n", "payments", "helmrelease", "workers", "-o",
			`jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.history[0].chartVersion}`)
		if err == nil && got != want {
			err = fmt.Errorf("want %q, got %q", want, got)
		}
		return err
	})
	d.summary("v3 v2 False Ramping") // the HelmRelease is ready in the ramp
	d.steps = oneStep
	d.push("worker:v3")
	d.ready("v3")
	d.server.await(t, "v3 True", "get", "-n", "payments", "twd", "checkout", "-o",
		`jsonpath={.status.currentVersion.buildID} {.status.conditions[?(@.type=="Ready")].status}`)
	d.only("v3")
	d.server.Kubectl(t, "", "annotate", "--overwrite", "-n", "payments", "twd", "checkout", "rampart.dev/reason=Fine")
	d.summary("v3 v3 True RolloutComplete")
	d.server.Kubectl(t, "", "delete", "-n", "payments", "helmrelease", "workers")
	d.only("v3")
	require.Equal(t, "v3", d.served())
}
