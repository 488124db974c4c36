package temporal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/retry"
	"github.com/rampart-gitops/rampart/internal/rollout"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// Raise gives a version more traffic. It describes again, and only if the routing is still the call's basis, times
// and revision included, and the manager identity is the call's (or empty, and is to be claimed), it claims and makes
// the steps, each with the token of the answer before. Otherwise it changes nothing and gives a StaleError, an
// OwnerError or, where task queues are missing that the call does not name, a MissingQueueError. A call whose answer
// was lost counts as made if the routing is what was asked for.
func (p *Pool) Raise(ctx context.Context, on rollout.Subject, call rollout.RoutingCall) error {
	m, err := p.mover(ctx, on, call)
	if err != nil {
		return err
	}
	if !m.at.routing.Same(call.Basis) {
		return m.fail(&StaleError{Basis: call.Basis, Actual: m.at.routing})
	}
	if err := m.mayLeave(ctx, call); err != nil {
		return m.fail(err)
	}
	if err := m.own(ctx, call.Claim); err != nil {
		return m.fail(err)
	}
	if err := m.makeAll(ctx, withResets(call.Steps, m.at.routing)); err != nil {
		return m.fail(err)
	}
	return nil
}

// mayLeave looks, right before a raise, at the task queues that the current version serves and the one that is raised
// does not. The server's flag ignores all that are missing, whichever were approved: with any other one missing the
// raise is not made.
func (m *mover) mayLeave(ctx context.Context, call rollout.RoutingCall) error {
	if len(call.LeavesBehind) == 0 || m.at.routing.Current == "" {
		return nil
	}
	leaving, err := m.describeVersion(ctx, m.deployment, m.at.routing.Current)
	if err != nil {
		return err
	}
	for _, step := range call.Steps {
		if step.Kind == rollout.ClearRamp {
			continue
		}
		taking, err := m.describeVersion(ctx, m.deployment, step.BuildID)
		if err != nil {
			return err
		}
		left, err := queuesMissing(leaving, taking)
		if err != nil {
			return err
		}
		for _, q := range left {
			if !slices.Contains(call.LeavesBehind,
				v1alpha1.RecordedQueue{Name: q.Name, Type: v1alpha1.QueueType(q.Type)}) {
				return &MissingQueueError{BuildID: step.BuildID, Queue: q}
			}
		}
	}
	m.missing = mayMissQueues
	return nil
}

// loweringTries is how often lowering starts over because someone moved the routing under it.
const loweringTries = 3

// Lower takes traffic back. If the routing was moved since the decision it goes on as long as the steps still take
// traffic from the build they were decided against; else it gives a StaleError. First it leaves the marks, which never
// hold it up. Where the server refuses because of missing task queues, these are ignored and logged.
func (p *Pool) Lower(ctx context.Context, on rollout.Subject, call rollout.RoutingCall) error {
	m, err := p.mover(ctx, on, call)
	if err != nil {
		return err
	}
	m.lowering = true
	for try := 1; ; try++ {
		err := m.lower(ctx, call)
		if err == nil {
			return nil
		}
		var moved *StaleError
		if !errors.As(err, &moved) || try == loweringTries {
			return m.fail(err)
		}
	}
}

// lower makes what is left of a lowering call, seen from the state as last read. After a StaleError that is a new one.
func (m *mover) lower(ctx context.Context, call rollout.RoutingCall) error {
	steps, err := lowering(call, m.at.routing)
	if err != nil {
		return err
	}
	if rollout.BelongsToOther(m.at.manager, m.identity) {
		return &OwnerError{Manager: m.at.manager, Identity: m.identity}
	}
	if !m.marked {
		m.marked = true
		m.mark(ctx, call.TurnedBack)
	}
	if len(steps) > 0 && call.Claim == rollout.ClaimNeeded && m.at.manager == "" {
		err := m.claim(ctx)
		var moved *StaleError
		var owned *OwnerError
		if errors.As(err, &moved) || errors.As(err, &owned) {
			return err
		}
		if err != nil { // nothing has moved, and an unclaimed deployment can be lowered too
			m.log.WarnContext(ctx, "manager identity not claimed", "error", err)
		}
	}
	return m.makeAll(ctx, steps)
}

// mover changes the routing of one worker deployment, step by step.
type mover struct {
	*session
	deployment, identity string
	lowering, marked     bool
	missing              missingQueues
	log                  *slog.Logger
	// at is the state as last read, or as the last accepted change left it.
	at routed
}

// routed is what a change depends on.
type routed struct {
	routing rollout.RoutingConfig
	token   []byte
	manager string
}

func (p *Pool) mover(ctx context.Context, on rollout.Subject, call rollout.RoutingCall) (*mover, error) {
	m := &mover{deployment: on.Deployment.String(), identity: call.Identity, missing: mustServeAll}
	m.log = p.cfg.Log.With("deployment", m.deployment, "temporalNamespace", on.TemporalNamespace)
	err := check(call)
	if err == nil {
		m.session, err = p.session(on.Connection, on.TemporalNamespace)
	}
	if err == nil {
		m.at, err = m.read(ctx)
	}
	if err != nil {
		return nil, m.fail(err)
	}
	return m, nil
}

func (m *mover) fail(err error) error {
	return fmt.Errorf("change routing of %s: %w", m.deployment, err)
}

func (m *mover) read(ctx context.Context) (routed, error) {
	resp, err := m.describeDeployment(ctx, m.deployment)
	if err != nil {
		return routed{}, err
	}
	routing, err := routingOf(resp.GetWorkerDeploymentInfo().GetRoutingConfig())
	if err != nil {
		return routed{}, err
	}
	return routed{routing, resp.GetConflictToken(), resp.GetWorkerDeploymentInfo().GetManagerIdentity()}, nil
}

// own makes sure that the manager identity is ours before traffic is raised.
func (m *mover) own(ctx context.Context, claim rollout.Claim) error {
	switch {
	case m.at.manager == m.identity:
		return nil
	case m.at.manager == "" && claim == rollout.ClaimNeeded:
		return m.claim(ctx)
	}
	return &OwnerError{Manager: m.at.manager, Identity: m.identity}
}

func (m *mover) claim(ctx context.Context) error {
	resp, err := write(ctx, writing{m.session, SiteSetManager}, m.service().SetWorkerDeploymentManager,
		&workflowservice.SetWorkerDeploymentManagerRequest{
			Namespace: m.namespace, DeploymentName: m.deployment, Identity: m.identity, ConflictToken: m.at.token,
			NewManagerIdentity: &workflowservice.SetWorkerDeploymentManagerRequest_Self{Self: true},
		})
	if err == nil {
		m.at.manager, m.at.token = m.identity, resp.GetConflictToken()
		return nil
	}
	before := m.at
	now, readErr := m.read(ctx)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	m.at = now
	switch {
	case !now.routing.SameTraffic(before.routing) || now.routing.Revision != before.routing.Revision:
		return &StaleError{Basis: before.routing, Actual: now.routing}
	case now.manager == m.identity:
		return nil
	case now.manager != "":
		return &OwnerError{Manager: now.manager, Identity: m.identity}
	case failedPrecondition(err) && !bytes.Equal(now.token, before.token):
		return &StaleError{Basis: before.routing, Actual: now.routing}
	case failedPrecondition(err):
		return &RefusedError{Site: SiteSetManager, Err: err}
	}
	return err
}

func (m *mover) makeAll(ctx context.Context, steps []rollout.RoutingStep) error {
	for _, step := range steps {
		if err := m.make(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// busyTries is how often a step is tried that the server was too busy for.
const busyTries = 4

// make makes one step. What is set already is not set again. A step that failed is tried once more where nothing has
// moved and the failure was one of transport, and after a pause where the server was too busy; the token makes sure
// that it cannot be made twice.
func (m *mover) make(ctx context.Context, step rollout.RoutingStep) error {
	want := m.at.routing.After(step)
	if want.SameTraffic(m.at.routing) {
		return nil
	}
	missing, pauses := m.missing, retry.Pauses(busyPause, longestBusyPause)
	for try := 1; ; try++ {
		token, err := m.call(ctx, step, missing)
		if err == nil {
			m.at.routing, m.at.token = want, token
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		before := m.at
		now, readErr := m.read(ctx)
		if readErr != nil {
			return fmt.Errorf("%s: not known what became of it: %w", siteOf(step.Kind), errors.Join(err, readErr))
		}
		m.at = now
		switch {
		case now.routing.SameTraffic(want):
			return nil
		case rollout.BelongsToOther(now.manager, m.identity):
			return &OwnerError{Manager: now.manager, Identity: m.identity}
		case !bytes.Equal(now.token, before.token):
			return &StaleError{Basis: before.routing, Actual: now.routing}
		case m.lowering && failedPrecondition(err) && missing == mustServeAll:
			missing = mayMissQueues
			m.nameLeftBehind(ctx, now.routing, step.BuildID)
		case failedPrecondition(err):
			return &RefusedError{Site: siteOf(step.Kind), Err: err}
		case errors.Is(err, rollout.ErrBusy) && try < busyTries:
			if pauseErr := retry.Sleep(ctx, pauses.NextBackOff()); pauseErr != nil {
				return fmt.Errorf("%s: %w", siteOf(step.Kind), err)
			}
		case !ambiguous(err) || try > 1:
			return fmt.Errorf("%s: %w", siteOf(step.Kind), err)
		}
	}
}

// missingQueues says whether a version may lack task queues that the current one serves.
type missingQueues string

const (
	mustServeAll  missingQueues = "MustServeAll"
	mayMissQueues missingQueues = "MayMissQueues"
)

// call makes a step's call and gives the next token.
func (m *mover) call(ctx context.Context, step rollout.RoutingStep, missing missingQueues) ([]byte, error) {
	w := writing{m.session, siteOf(step.Kind)}
	if step.Kind == rollout.SetCurrent {
		resp, err := write(ctx, w, m.service().SetWorkerDeploymentCurrentVersion,
			&workflowservice.SetWorkerDeploymentCurrentVersionRequest{
				Namespace: m.namespace, DeploymentName: m.deployment, BuildId: step.BuildID, Identity: m.identity,
				ConflictToken: m.at.token, IgnoreMissingTaskQueues: missing == mayMissQueues,
			})
		return resp.GetConflictToken(), err
	}
	req := &workflowservice.SetWorkerDeploymentRampingVersionRequest{
		Namespace: m.namespace, DeploymentName: m.deployment, Identity: m.identity,
		ConflictToken: m.at.token, IgnoreMissingTaskQueues: missing == mayMissQueues,
	}
	if step.Kind == rollout.SetRamp {
		req.BuildId, req.Percentage = step.BuildID, step.Percentage
	}
	resp, err := write(ctx, w, m.service().SetWorkerDeploymentRampingVersion, req)
	return resp.GetConflictToken(), err
}

// nameLeftBehind finds the task queues that the current version serves and the one that takes over does not. That they
// cannot be read holds nothing up.
func (m *mover) nameLeftBehind(ctx context.Context, now rollout.RoutingConfig, build string) {
	var left []rollout.TaskQueue
	leaving, err := m.describeVersion(ctx, m.deployment, now.Current)
	if err == nil {
		taking, takingErr := m.describeVersion(ctx, m.deployment, build)
		if takingErr == nil {
			left, err = queuesMissing(leaving, taking)
		}
		err = errors.Join(err, takingErr)
	}
	if err != nil {
		m.log.WarnContext(ctx, "task queues left behind are not known", "buildID", build, "error", err)
		return
	}
	for _, q := range left {
		m.log.WarnContext(ctx, "task queue left behind: its tasks go to unversioned workers", "buildID", build,
			"taskQueue", q.Name, "type", q.Type)
	}
}

func queuesMissing(leaving, taking *workflowservice.DescribeWorkerDeploymentVersionResponse) (
	[]rollout.TaskQueue, error) {
	had, err := queuesOf(leaving)
	if err != nil {
		return nil, err
	}
	has, err := queuesOf(taking)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(had, func(q rollout.TaskQueue) bool {
		return slices.ContainsFunc(has, func(other rollout.TaskQueue) bool { return compareQueues(q, other) == 0 })
	}), nil
}

// mark leaves the marks "turned back" in the versions' metadata, for a run after a crash. It takes markTimeout at most.
func (m *mover) mark(ctx context.Context, reasons map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	for _, build := range sortedKeys(reasons) {
		data, err := json.Marshal(reasons[build])
		if err == nil {
			_, err = write(ctx, writing{m.session, SiteMarkTurnedBack},
				m.service().UpdateWorkerDeploymentVersionMetadata,
				&workflowservice.UpdateWorkerDeploymentVersionMetadataRequest{
					Namespace: m.namespace, DeploymentVersion: version(m.deployment, build), Identity: m.identity,
					UpsertEntries: map[string]*commonpb.Payload{MarkKey: jsonPayload(data)},
				})
		}
		if err != nil {
			m.log.WarnContext(ctx, "mark not left", "buildID", build, "error", err)
		}
	}
}
