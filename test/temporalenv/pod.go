package temporalenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	corev1 "k8s.io/api/core/v1"
)

// restartPause is how long a pod that failed waits before it is started again.
const restartPause = 100 * time.Millisecond

// pod is one replica: a process of its own in a cluster, a set of SDK workers here.
type pod struct {
	name       string
	deployment Deployment
	image      Image
	fleet      *Fleet
	object     string

	ready  atomic.Bool
	cancel context.CancelFunc
	// begun is closed when the pod is ready for the first time, done when it has ended.
	begun, done chan struct{}
	beginOnce   sync.Once
}

func (p *pod) start() {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.begun, p.done = cancel, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(p.done)
		p.loop(ctx)
	}()
}

// loop restarts the pod's process for as long as the pod is wanted.
func (p *pod) loop(ctx context.Context) {
	for ctx.Err() == nil {
		err := p.run(ctx)
		p.ready.Store(false)
		if err == nil || ctx.Err() != nil {
			return
		}
		p.fleet.note(Event{Kind: Crashed, Object: p.object, Detail: err.Error()})
		select {
		case <-ctx.Done():
		case <-time.After(restartPause):
		}
	}
}

// run is the life of one process. It returns nil when the pod is not wanted any longer.
func (p *pod) run(ctx context.Context) error {
	env, err := p.fleet.environ(p.object, p.deployment.Env)
	if err != nil {
		return err
	}
	if len(p.image.Command) > 0 {
		return p.exec(ctx, env)
	}
	opts, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{DisableFile: true, EnvLookup: env})
	if err != nil {
		return fmt.Errorf("read client options from the environment: %w", err)
	}
	opts.Identity = "1@" + p.name // as the SDKs have it by default: process and host, which is the pod
	opts.Logger = log.NewStructuredLogger(p.fleet.cfg.Log)
	c, err := client.DialContext(ctx, opts)
	if err != nil {
		return fmt.Errorf("dial temporal: %w", err)
	}
	defer c.Close()

	fatal := make(chan error, 1)
	options := worker.Options{
		DeploymentOptions: worker.DeploymentOptions{
			UseVersioning: true,
			Version: worker.WorkerDeploymentVersion{
				DeploymentName: env["TEMPORAL_DEPLOYMENT_NAME"],
				BuildID:        env["TEMPORAL_WORKER_BUILD_ID"],
			},
			DefaultVersioningBehavior: p.image.DefaultBehavior,
		},
		OnFatalError: func(err error) {
			select {
			case fatal <- err:
			default:
			}
		},
	}
	if options.DeploymentOptions.Version.DeploymentName == "" || options.DeploymentOptions.Version.BuildID == "" {
		return errors.New("TEMPORAL_DEPLOYMENT_NAME or TEMPORAL_WORKER_BUILD_ID is not set")
	}
	options.DisableWorkflowWorker, options.LocalActivityWorkerOnly = p.image.ActivitiesOnly, p.image.WorkflowsOnly
	for _, queue := range p.image.TaskQueues {
		w := worker.New(c, queue, options)
		p.image.Register(w)
		if err := w.Start(); err != nil {
			return fmt.Errorf("start worker on %q: %w", queue, err)
		}
		defer w.Stop()
	}
	p.ready.Store(true)
	p.beginOnce.Do(func() { close(p.begun) })
	select {
	case <-ctx.Done():
		return nil
	case err := <-fatal:
		return fmt.Errorf("worker failed: %w", err)
	}
}

// awaitReady returns when the pod has been ready once, or has ended.
func (p *pod) awaitReady() {
	select {
	case <-p.begun:
	case <-p.done:
	}
}

func (p *pod) stop() {
	p.cancel()
	<-p.done
}

// environment is the variables of one container; it answers envconfig in place of the process's own.
type environment map[string]string

// Environ lists the variables as "name=value".
func (e environment) Environ() []string {
	out := make([]string, 0, len(e))
	for _, name := range slices.Sorted(maps.Keys(e)) {
		out = append(out, name+"="+e[name])
	}
	return out
}

// LookupEnv gives one variable and whether it is set.
func (e environment) LookupEnv(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// environ is what a container sees. The last of several entries of one name wins, secrets are filled in, and paths of
// files are found under the fleet's root.
func (f *Fleet) environ(object string, vars []corev1.EnvVar) (environment, error) {
	namespace, _, _ := strings.Cut(strings.TrimPrefix(object, "Deployment "), "/")
	env := environment{}
	for _, v := range vars {
		value := v.Value
		if v.ValueFrom != nil {
			ref := v.ValueFrom.SecretKeyRef
			if ref == nil {
				return nil, fmt.Errorf("environment %s: only secrets can be a source", v.Name)
			}
			secret, ok := f.cfg.Secrets[namespace+"/"+ref.Name][ref.Key]
			if !ok {
				return nil, fmt.Errorf("environment %s: no secret %s/%s with key %s", v.Name, namespace, ref.Name,
					ref.Key)
			}
			value = secret
		}
		if strings.HasPrefix(v.Name, "TEMPORAL_TLS_") && strings.HasSuffix(v.Name, "_PATH") {
			value = filepath.Join(f.cfg.Root, value)
		}
		env[v.Name] = value
	}
	return env, nil
}

// exec runs the image's command until the pod is not wanted any longer.
func (p *pod) exec(ctx context.Context, env environment) error {
	cmd := exec.CommandContext(ctx, p.image.Command[0], p.image.Command[1:]...)
	cmd.Env = append(env.Environ(), "HOME=/") // as container runtimes do
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.image.Command[0], err)
	}
	p.ready.Store(true)
	p.beginOnce.Do(func() { close(p.begun) })
	if err := cmd.Wait(); ctx.Err() == nil {
		return fmt.Errorf("%s ended: %w: %s", p.image.Command[0], err, said.String())
	}
	return nil
}
