package temporalenv

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	deploymentspb "go.temporal.io/server/api/deployment/v1"
	"go.temporal.io/server/service/worker/workerdeployment"
)

// SyncDrained has the server know what it missed: that versions drained. A server of 1.32 loses what the workflow of a
// version tells that of its worker deployment just when the latter begins a new run (docs/compatibility.md). The
// version drains for ever then in the eyes of the server, which does not delete it either. SyncDrained gives the
// versions that it told the server about.
func (n *Namespace) SyncDrained(ctx context.Context) ([]string, error) {
	c, err := n.Client(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	list, err := n.Service().ListWorkerDeployments(ctx,
		&workflowservice.ListWorkerDeploymentsRequest{Namespace: n.name})
	if err != nil {
		return nil, fmt.Errorf("list worker deployments: %w", err)
	}
	var told []string
	for _, one := range list.GetWorkerDeployments() {
		d, err := n.Service().DescribeWorkerDeployment(ctx, &workflowservice.DescribeWorkerDeploymentRequest{
			Namespace: n.name, DeploymentName: one.GetName(),
		})
		if err != nil {
			return told, fmt.Errorf("describe %s: %w", one.GetName(), err)
		}
		for _, summary := range d.GetWorkerDeploymentInfo().GetVersionSummaries() {
			if summary.GetStatus() != enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_DRAINING {
				continue
			}
			id := summary.GetDeploymentVersion().GetBuildId()
			answer, err := c.QueryWorkflow(ctx, workerdeployment.GenerateVersionWorkflowID(one.GetName(), id), "",
				workerdeployment.QueryDescribeVersion)
			if err != nil {
				return told, fmt.Errorf("query %s of %s: %w", id, one.GetName(), err)
			}
			var is deploymentspb.QueryDescribeVersionResponse
			if err := answer.Get(&is); err != nil {
				return told, err
			}
			state := is.GetVersionState()
			if state.GetDrainageInfo().GetStatus() != enumspb.VERSION_DRAINAGE_STATUS_DRAINED {
				continue
			}
			err = c.SignalWorkflow(ctx, workerdeployment.GenerateDeploymentWorkflowID(one.GetName()), "",
				workerdeployment.SyncVersionSummarySignal, &deploymentspb.WorkerDeploymentVersionSummary{
					Version: one.GetName() + "." + id, CreateTime: state.GetCreateTime(),
					DrainageInfo:      state.GetDrainageInfo(),
					RoutingUpdateTime: state.GetRoutingUpdateTime(), CurrentSinceTime: state.GetCurrentSinceTime(),
					RampingSinceTime:    state.GetRampingSinceTime(),
					FirstActivationTime: state.GetFirstActivationTime(), LastCurrentTime: state.GetLastCurrentTime(),
					LastDeactivationTime: state.GetLastDeactivationTime(), Status: state.GetStatus(),
					ComputeConfig: state.GetComputeConfig(),
				})
			if err != nil {
				return told, fmt.Errorf("signal %s: %w", one.GetName(), err)
			}
			told = append(told, one.GetName()+":"+id)
		}
	}
	return told, nil
}
