package temporalenv

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// FinishSignal ends a Slow or Follow workflow.
const FinishSignal = "finish"

// The names of the workflows and the activity that DefaultImage has.
const (
	// Checkout is pinned, runs the activity Charge once and ends at once. Its result is the build ID it ended on.
	Checkout = "Checkout"
	// Smoke is a gate that passes, SmokeFails one that fails; both pinned.
	Smoke      = "Smoke"
	SmokeFails = "SmokeFails"
	// Slow is pinned and ends on FinishSignal.
	Slow = "Slow"
	// Follow is auto-upgrading and ends on FinishSignal.
	Follow = "Follow"
	// Charge is the activity.
	Charge = "Charge"
)

// DefaultImage is an image with all the workflows above that polls the given queues.
func DefaultImage(queues ...string) Image {
	return Image{TaskQueues: queues, Register: func(w worker.Registry) {
		register(w, Checkout, workflow.VersioningBehaviorPinned, checkout)
		register(w, Smoke, workflow.VersioningBehaviorPinned, smoke)
		register(w, SmokeFails, workflow.VersioningBehaviorPinned, smokeFails)
		register(w, Slow, workflow.VersioningBehaviorPinned, awaitFinish)
		register(w, Follow, workflow.VersioningBehaviorAutoUpgrade, awaitFinish)
		w.RegisterActivityWithOptions(charge, activity.RegisterOptions{Name: Charge})
	}}
}

// FailingImage is DefaultImage with a Checkout whose executions all fail: a bad build.
func FailingImage(queues ...string) Image {
	return Image{TaskQueues: queues, Register: func(w worker.Registry) {
		register(w, Checkout, workflow.VersioningBehaviorPinned, checkoutFails)
		register(w, Smoke, workflow.VersioningBehaviorPinned, smoke)
	}}
}

func register(w worker.Registry, name string, behavior workflow.VersioningBehavior, fn any) {
	w.RegisterWorkflowWithOptions(fn, workflow.RegisterOptions{Name: name, VersioningBehavior: behavior})
}

func checkout(ctx workflow.Context) (string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	if err := workflow.ExecuteActivity(ctx, Charge).Get(ctx, nil); err != nil {
		return "", err
	}
	return workflow.GetInfo(ctx).GetCurrentBuildID(), nil
}

func checkoutFails(workflow.Context) error {
	return temporal.NewNonRetryableApplicationError("card refused", "Refused", nil)
}

func smoke(workflow.Context) error { return nil }

func smokeFails(workflow.Context) error { return errors.New("smoke test failed") }

func awaitFinish(ctx workflow.Context) error {
	workflow.GetSignalChannel(ctx, FinishSignal).Receive(ctx, nil)
	return nil
}

func charge(context.Context) error { return nil }
