// Command worker is a Temporal worker as Rampart rolls it out. It reads from its environment, which Rampart renders,
// what it connects to, its worker deployment and its version:
//
//	TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE      where Temporal is, beside TEMPORAL_TLS_… and TEMPORAL_API_KEY where
//	                                          the connection has credentials
//	TEMPORAL_DEPLOYMENT_NAME                  the worker deployment, <namespace>/<name> of its spec
//	TEMPORAL_WORKER_BUILD_ID                  the version
//
// TASK_QUEUE is its own, "checkout" by default.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	version := worker.WorkerDeploymentVersion{DeploymentName: os.Getenv("TEMPORAL_DEPLOYMENT_NAME"),
		BuildID: os.Getenv("TEMPORAL_WORKER_BUILD_ID")}
	if version.DeploymentName == "" || version.BuildID == "" {
		return fmt.Errorf("TEMPORAL_DEPLOYMENT_NAME and TEMPORAL_WORKER_BUILD_ID have to be set, such as " +
			"payments/checkout and v1: Rampart renders them")
	}
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return fmt.Errorf("read the environment: %w", err)
	}
	c, err := client.Dial(options)
	if err != nil {
		return fmt.Errorf("connect to Temporal: %w", err)
	}
	defer c.Close()

	w := worker.New(c, cmp.Or(os.Getenv("TASK_QUEUE"), "checkout"), worker.Options{
		DeploymentOptions: worker.DeploymentOptions{
			UseVersioning: true, // without it Rampart waits for its workers forever
			Version:       version,
			// A workflow that has begun ends on its version. AutoUpgrade takes it along instead, which its code has to
			// stand.
			DefaultVersioningBehavior: workflow.VersioningBehaviorPinned,
		},
		WorkerStopTimeout: 10 * time.Second, // for activities under way when the pod ends
	})
	w.RegisterWorkflow(Checkout)
	w.RegisterActivity(Charge)
	return w.Run(worker.InterruptCh())
}

// Checkout charges an order, and gives the receipt.
func Checkout(ctx workflow.Context, order string) (string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	var receipt string
	err := workflow.ExecuteActivity(ctx, Charge, order).Get(ctx, &receipt)
	return receipt, err
}

// Charge stands for a call to somebody else.
func Charge(_ context.Context, order string) (string, error) {
	return "charged " + order, nil
}
