package temporal

import (
	"context"
	"fmt"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// nobodys is the name of a worker deployment that does not exist: the bot's have a slash.
const nobodys = "rampart-doctor"

// MayChange asks whether the bot may change worker deployments of a namespace; nil: it may. It asks for the ramp of one
// that does not exist to be taken away: a server checks permissions before it looks for it, and changes nothing.
func (p *Pool) MayChange(ctx context.Context, conn v1alpha1.Connection, temporalNamespace string) error {
	s, err := p.session(conn, temporalNamespace)
	if err == nil {
		_, err = write(ctx, writing{s, SiteClearRamp}, s.service().SetWorkerDeploymentRampingVersion,
			&workflowservice.SetWorkerDeploymentRampingVersionRequest{Namespace: s.namespace, DeploymentName: nobodys,
				Identity: p.cfg.Identity})
	}
	if err == nil || notFound(err) {
		return nil
	}
	return fmt.Errorf("try to change a worker deployment in namespace %s: %w", temporalNamespace, err)
}

// Heartbeats reports whether a namespace takes the heartbeats of workers. Without them nothing tells of workers that
// poll without versioning.
func (p *Pool) Heartbeats(ctx context.Context, conn v1alpha1.Connection, temporalNamespace string) (bool, error) {
	s, err := p.session(conn, temporalNamespace)
	if err != nil {
		return false, err
	}
	resp, err := read(ctx, reading{s, describing}, s.service().DescribeNamespace,
		&workflowservice.DescribeNamespaceRequest{Namespace: s.namespace})
	if err != nil {
		return false, fmt.Errorf("describe Temporal namespace %s: %w", temporalNamespace, err)
	}
	return resp.GetNamespaceInfo().GetCapabilities().GetWorkerHeartbeats(), nil
}
