package temporal

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// ManagerCall hands a worker deployment's routing from one manager identity to another; "" stands for no owner.
type ManagerCall struct {
	From, To string
	// Token that came with the read of From.
	Token []byte
}

// SetManager changes the manager identity. It is the only change that may be made to a worker deployment of somebody
// else's, and only where a person asks for it. It describes again, and changes nothing unless the manager is still the
// call's From and the token still the one that came with it: then the answer is an OwnerError or a StaleError. That it
// is set already is fine, and so is a call whose answer was lost but which was made.
func (p *Pool) SetManager(ctx context.Context, on rollout.Subject, call ManagerCall) error {
	name := on.Deployment.String()
	fail := func(err error) error { return fmt.Errorf("set manager identity of %s: %w", name, err) }
	s, err := p.session(on.Connection, on.TemporalNamespace)
	if err != nil {
		return fail(err)
	}
	m := &mover{session: s, deployment: name, identity: on.Identity, log: p.cfg.Log}
	if m.at, err = m.read(ctx); err != nil {
		return fail(err)
	}
	switch {
	case m.at.manager == call.To:
		return nil
	case m.at.manager != call.From:
		return fail(&OwnerError{Manager: m.at.manager, Identity: call.From})
	case !bytes.Equal(m.at.token, call.Token):
		return fail(&StaleError{Basis: m.at.routing, Actual: m.at.routing})
	}
	to := &workflowservice.SetWorkerDeploymentManagerRequest_ManagerIdentity{ManagerIdentity: call.To}
	_, err = write(ctx, writing{s, SiteSetManager}, s.service().SetWorkerDeploymentManager,
		&workflowservice.SetWorkerDeploymentManagerRequest{
			Namespace: s.namespace, DeploymentName: name, Identity: on.Identity, ConflictToken: call.Token,
			NewManagerIdentity: to,
		})
	if err == nil {
		return nil
	}
	before := m.at
	now, readErr := m.read(ctx)
	switch {
	case readErr != nil:
		return fail(errors.Join(err, readErr))
	case now.manager == call.To:
		return nil
	case failedPrecondition(err) && !bytes.Equal(now.token, before.token):
		return fail(&StaleError{Basis: before.routing, Actual: now.routing})
	case failedPrecondition(err):
		return fail(&RefusedError{Site: SiteSetManager, Err: err})
	}
	return fail(err)
}
