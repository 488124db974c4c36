package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rampart-gitops/rampart/internal/rollout"
	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// DeleteVersion asks the server to delete a version, never skipping its drainage. That the version is gone already
// counts as accepted; that the server refuses is the Deletion's Refused, in the server's words. An error says that it
// is not known what became of it.
func (p *Pool) DeleteVersion(ctx context.Context, on rollout.Subject, buildID string) (rollout.Deletion, error) {
	deletion := rollout.Deletion{BuildID: buildID}
	fail := func(err error) (rollout.Deletion, error) {
		return rollout.Deletion{}, fmt.Errorf("delete version %s of %s: %w", buildID, on.Deployment, err)
	}
	s, err := p.session(on.Connection, on.TemporalNamespace)
	if err != nil {
		return fail(err)
	}
	_, err = write(ctx, writing{s, SiteDeleteVersion}, s.service().DeleteWorkerDeploymentVersion,
		&workflowservice.DeleteWorkerDeploymentVersionRequest{
			Namespace: s.namespace, DeploymentVersion: version(on.Deployment.String(), buildID), Identity: on.Identity,
		})
	switch {
	case err == nil, notFound(err):
		return deletion, nil
	case failedPrecondition(err):
		deletion.Refused = err.Error()
		return deletion, nil
	case ctx.Err() != nil || !ambiguous(err):
		return fail(err)
	}
	gone, readErr := s.gone(ctx, on.Deployment.String(), buildID)
	if readErr != nil || !gone {
		return fail(errors.Join(err, readErr))
	}
	return deletion, nil
}

// gone reports whether the server is known not to list a version.
func (s *session) gone(ctx context.Context, deployment, build string) (bool, error) {
	resp, err := s.describeDeployment(ctx, deployment)
	if notFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(resp.GetWorkerDeploymentInfo().GetVersionSummaries(),
		func(v *deploymentpb.WorkerDeploymentInfo_WorkerDeploymentVersionSummary) bool {
			return v.GetDeploymentVersion().GetBuildId() == build || v.GetDeploymentVersion() == nil
		}), nil
}
