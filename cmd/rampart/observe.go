package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func (a *app) observeCommand() *cobra.Command {
	var (
		output     choice
		repository repositoryFlags
		server     temporalFlags
		k8s        clusterFlags
	)
	cmd := &cobra.Command{
		Use:   "observe",
		Short: "Print what the bot sees: specs, records, and what Temporal says",
		Long: `Observe reads the folder -C, or the branch of --repo, and Temporal, and prints all of it: the world that decisions are made
on, one snapshot for each worker deployment. It changes nothing. What could not be read is said in the snapshot.

rampart plan --snapshot and rampart explain --snapshot decide again from its JSON, without Git and network. The snapshot
holds the specs and the recorded manifests, and no credentials of the bot.`,
		Example: `  rampart observe > snapshot.json
  rampart observe --repo https://git.example.com/team/workers.git | jq '.environments[].deployments[].observation'`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			// Deciding as well shows where a second read is wanted.
			world, decided, err := a.decideLive(cmd.Context(), liveFlags{repository, server, k8s})
			if err != nil {
				return err
			}
			for _, d := range slices.Concat(decided...) {
				if p := d.Snapshot.Observation.Problem; p != nil {
					a.log.WarnContext(cmd.Context(), "not read from Temporal", "deployment", d.Snapshot.Deployment.String(),
						"reason", string(p.Reason), "error", p.Message)
				}
			}
			return a.encode(output.value, observed(world, decided))
		},
	}
	a.addOutput(cmd, &output, formatJSON, formatYAML)
	repository.addReading(cmd)
	a.addTemporal(cmd, &server)
	a.addLimits(cmd, &server)
	k8s.addPods(cmd)
	a.addPolicies(cmd)
	return cmd
}

// observed is the world with what was read of Temporal. It is complete for deciding again: a decision that wanted a
// second read has both.
func observed(world rollout.World, decided [][]*reconcile.Decision) rollout.World {
	out := world
	out.Environments = make([]rollout.EnvironmentWorld, len(world.Environments))
	for i, env := range world.Environments {
		env.Deployments = make([]rollout.Snapshot, 0, len(decided[i]))
		for _, d := range decided[i] {
			env.Deployments = append(env.Deployments, d.Snapshot)
		}
		out.Environments[i] = env
	}
	return out
}
