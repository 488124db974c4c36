package inspect

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func observeCommand(a *cmdutil.App) *cobra.Command {
	var (
		output     cmdutil.Choice
		repository cmdutil.RepositoryFlags
		server     cmdutil.TemporalFlags
		k8s        cmdutil.ClusterFlags
	)
	cmd := &cobra.Command{
		Use:   "observe",
		Short: "Print what the bot sees: specs, records, and what Temporal says",
		Long: `Observe reads the folder -C, or the branch of --repo, and Temporal, and prints all of it: the world
that decisions are made on, one snapshot for each worker deployment. It changes nothing. What could not be read is
said in the snapshot.

rampart plan --snapshot and rampart explain --snapshot decide again from its JSON, without Git and network. The snapshot
holds the specs and the recorded manifests, and no credentials of the bot.`,
		Example: `  rampart observe > snapshot.json
  rampart observe --repo https://git.example.com/team/workers.git | jq '.environments[].deployments[].observation'`,
		Args:              cmdutil.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			// Deciding as well shows where a second read is wanted.
			world, decided, err := decideLive(cmd.Context(), a, liveFlags{repository, server, k8s})
			if err != nil {
				return err
			}
			for _, d := range slices.Concat(decided...) {
				if p := d.Snapshot.Observation.Problem; p != nil {
					a.Log.WarnContext(cmd.Context(), "not read from Temporal", "deployment",
						d.Snapshot.Deployment.String(), "reason", string(p.Reason), "error", p.Message)
				}
			}
			return a.Encode(output.Value, observed(world, decided))
		},
	}
	cmdutil.AddOutput(cmd, &output, cmdutil.FormatJSON, cmdutil.FormatYAML)
	repository.AddReading(cmd)
	server.Add(cmd)
	server.AddLimits(cmd)
	k8s.AddPods(cmd)
	cmdutil.AddPolicies(a, cmd)
	return cmd
}

// observed is the world with what was read of Temporal. It is complete for deciding again: a decision that wanted a
// second read has both.
func observed(world rollout.World, decided [][]*rollout.Decision) rollout.World {
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
