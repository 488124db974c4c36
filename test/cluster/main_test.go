package cluster

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/worker"

	"github.com/rampart-gitops/rampart/test/giteatest"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// asWorker is the variable with which this program is a worker in place of a test. It may be good; bad, whose workflows
// fail; flaky, whose activities fail at first; or plain, without versions.
const asWorker = "RAMPART_TEST_WORKER"

const taskQueue = "checkout"

func TestMain(m *testing.M) {
	if kind := os.Getenv(asWorker); kind != "" {
		if err := work(kind); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	os.Exit(giteatest.Main(m))
}

// workerImage is a container image of that worker.
func workerImage(t testing.TB, kind string) Image {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Image{Command: []string{program}, Env: []string{asWorker + "=" + kind}}
}

// work serves the task queue, with what the environment says of Temporal and the version, until it is asked to end.
func work(kind string) error {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return err
	}
	options.Identity = fmt.Sprintf("%d@%s", os.Getpid(), os.Getenv("HOSTNAME")) // a host of its own gives the pod's name
	c, err := client.DialContext(context.Background(), options)
	if err != nil {
		return err
	}
	defer c.Close()
	image := temporalenv.DefaultImage(taskQueue)
	if kind == "bad" {
		image = temporalenv.FailingImage(taskQueue)
	}
	deployment := worker.DeploymentOptions{UseVersioning: true, Version: worker.WorkerDeploymentVersion{
		DeploymentName: os.Getenv("TEMPORAL_DEPLOYMENT_NAME"), BuildID: os.Getenv("TEMPORAL_WORKER_BUILD_ID")}}
	if kind == "plain" {
		deployment = worker.DeploymentOptions{}
	}
	w := worker.New(c, taskQueue, worker.Options{DeploymentOptions: deployment})
	metered := &charges{Registry: w, flaky: kind == "flaky"}
	if ip := os.Getenv("POD_IP"); ip != "" {
		if err := metered.serve(ip + ":9090"); err != nil {
			return err
		}
	}
	image.Register(metered)
	return w.Run(worker.InterruptCh())
}
