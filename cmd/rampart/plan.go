package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func (a *app) planCommand() *cobra.Command {
	var (
		output     choice
		repository repositoryFlags
		server     temporalFlags
		k8s        clusterFlags
		snapshot   string
	)
	cmd := &cobra.Command{
		Use:   "plan [NAME...]",
		Short: "Show what the bot's next cycle would do",
		Long: `Plan shows, for each worker deployment or those that are named, what the next cycle would do: the row of the rules that decides, each action with
what policy says of it, how the routing would move, and how the files would change. It changes nothing: no writer is made.

It reads the folder -C as it is on disk (so a change can be tried before it is committed), or the branch of --repo as
rampart run does, and Temporal. With --snapshot it decides offline on what rampart observe printed; "-" is standard input. A NAME
is namespace/name, or the name alone. The others are decided too, since rollouts start one after the other; they are not shown.

Exit code 2 if anything would change, 0 if nothing would, 1 if something could not be read.`,
		Example: `  rampart plan
  rampart plan payments/checkout
  rampart plan --repo https://git.example.com/team/workers.git --branch main -o json
  rampart observe > snapshot.json; rampart plan --snapshot snapshot.json`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			var world rollout.World
			var decided [][]*reconcile.Decision
			var err error
			if snapshot != "" {
				world, decided, err = a.decideSnapshot(cmd.Context(), snapshot)
			} else {
				world, decided, err = a.decideLive(cmd.Context(), liveFlags{repository, server, k8s})
			}
			if err != nil {
				return err
			}
			if decided, err = onlyNamed(world, decided, args); err != nil {
				return a.because(world, err)
			}
			if noDeployments(world) {
				a.sayNoSpecs(world, cmp.Or(snapshot, repository.url, a.dir))
			}
			return a.printPlan(output.value, world, decided)
		},
	}
	a.addOutput(cmd, &output, formatText, formatJSON, formatYAML)
	repository.addReading(cmd)
	a.addTemporal(cmd, &server)
	a.addLimits(cmd, &server)
	k8s.addPods(cmd)
	a.addPolicies(cmd)
	cmd.Flags().StringVar(&snapshot, "snapshot", "", "file that rampart observe wrote; neither Git nor Temporal are asked")
	cmd.MarkFlagsMutuallyExclusive("snapshot", "repo")
	return cmd
}

// liveFlags say what is looked at.
type liveFlags struct {
	repository repositoryFlags
	temporal   temporalFlags
	cluster    clusterFlags
}

func (a *app) decideLive(ctx context.Context, f liveFlags) (world rollout.World, decided [][]*reconcile.Decision, err error) {
	source, closeSource, err := a.source(f.repository)
	if err != nil {
		return world, nil, err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	pool, err := a.pool(f.temporal, poolHooks{})
	if err != nil {
		return world, nil, err
	}
	defer pool.Close()
	judges, err := a.judges(ctx)
	if err != nil {
		return world, nil, err
	}
	defer judges.close()
	pods, err := a.pods(f.cluster)
	if err != nil {
		return world, nil, err
	}
	defer pods.close()
	planner, err := a.planner(ends{source, pool, judges, pods}, f.temporal)
	if err != nil {
		return world, nil, err
	}
	asksPool(planner, pool)
	return patiently(ctx, planner, time.Second)
}

// busyTries is how often a busy Temporal is asked, with pauses that double. The bot asks it again in the next cycle.
const busyTries = 4

// patiently plans, again where Temporal was too busy to answer.
func patiently(ctx context.Context, planner *reconcile.Planner, pause time.Duration) (rollout.World, [][]*reconcile.Decision, error) {
	for try := 1; ; try++ {
		world, decided, err := planner.Plan(ctx)
		busy := slices.ContainsFunc(slices.Concat(decided...), func(d *reconcile.Decision) bool {
			p := d.Snapshot.Observation.Problem
			return p != nil && p.Busy
		})
		if err != nil || !busy || try == busyTries {
			return world, decided, err
		}
		if err := sleep(ctx, pause); err != nil {
			return world, decided, err
		}
		pause *= 2
	}
}

// decideSnapshot decides on what was observed earlier.
func (a *app) decideSnapshot(ctx context.Context, name string) (rollout.World, [][]*reconcile.Decision, error) {
	world, err := a.readSnapshot(name)
	if err != nil {
		return world, nil, err
	}
	judges, err := a.judges(ctx)
	if err != nil {
		return world, nil, err
	}
	defer judges.close()
	out := make([][]*reconcile.Decision, len(world.Environments))
	for i, env := range world.Environments {
		out[i] = reconcile.DecideAll(ctx, judges.engine(env), env.Deployments)
	}
	return world, out, ctx.Err()
}

// readSnapshot reads what observe wrote.
func (a *app) readSnapshot(name string) (rollout.World, error) {
	data, err := a.readInput(name)
	if err != nil {
		return rollout.World{}, fmt.Errorf("read --snapshot: %w", err)
	}
	world, err := decodeSnapshot(data)
	if err != nil {
		return world, fmt.Errorf("read --snapshot %s: %w", name, err)
	}
	return onlyEnvironment(world, a.env)
}

func decodeSnapshot(data []byte) (rollout.World, error) {
	var world rollout.World
	// What is embedded as JSON (templates, inputs of gates) goes into hashes as it is written: without white space.
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return world, fmt.Errorf("want JSON, as rampart observe prints it without -o yaml: %w", err)
	}
	dec := json.NewDecoder(&compact)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&world); err != nil {
		return world, fmt.Errorf("it is not what rampart observe of this version writes: %w", err)
	}
	return world, nil
}

func (a *app) readInput(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(a.in)
	}
	return os.ReadFile(name)
}

// onlyNamed are the decisions about the worker deployments of those names, all of them without names.
func onlyNamed(world rollout.World, decided [][]*reconcile.Decision, names []string) ([][]*reconcile.Decision, error) {
	if len(names) == 0 {
		return decided, nil
	}
	chosen, err := deployments(world, names)
	if err != nil {
		return nil, err
	}
	out := make([][]*reconcile.Decision, len(decided))
	for i, env := range decided {
		for _, d := range env {
			if slices.ContainsFunc(chosen, func(s rollout.Snapshot) bool {
				return s.Deployment == d.Snapshot.Deployment && s.Environment.Name == d.Snapshot.Environment.Name
			}) {
				out[i] = append(out[i], d)
			}
		}
	}
	return out, nil
}

// printPlan prints what was decided. What could not be read of Temporal is an error: nothing is known to change then.
func (a *app) printPlan(format string, world rollout.World, decided [][]*reconcile.Decision) error {
	p, err := planReport(world, decided)
	if err != nil {
		return err
	}
	p.Problems = worldProblems(world)
	if format == formatText {
		for _, problem := range p.Problems {
			a.say("%s", problemLine(problem))
		}
		err = p.WriteText(a.out, a.style())
	} else {
		err = a.encode(format, p)
	}
	if err != nil {
		return err
	}
	if unread, total := unreadable(decided); unread > 0 {
		return fmt.Errorf("%d of %d worker deployments could not be read from Temporal", unread, total)
	}
	if len(world.Environments) == 0 {
		return errors.New("the repository's configuration cannot be used")
	}
	if p.Pending {
		return pending(nil)
	}
	return nil
}

func unreadable(decided [][]*reconcile.Decision) (unread, total int) {
	for _, env := range decided {
		for _, d := range env {
			total++
			if d.Snapshot.Observation.Problem != nil {
				unread++
			}
		}
	}
	return unread, total
}

// planReport renders what was decided, as the next cycle does.
func planReport(world rollout.World, decided [][]*reconcile.Decision) (report.Plan, error) {
	var all []report.Decided
	var rest []report.EnvironmentFile
	for i, env := range world.Environments {
		parts, root, err := reconcile.Compose(env, decided[i])
		if err != nil {
			return report.Plan{}, err
		}
		for _, part := range parts {
			all = append(all, reported(part))
		}
		if root == nil {
			continue
		}
		f := report.EnvironmentFile{Change: *root, Was: env.RootFile.Data, Exists: rollout.No}
		if env.RootFile.Hash != "" {
			f.Exists = rollout.Yes
		}
		rest = append(rest, f)
	}
	return report.NewPlan(all, rest), nil
}

func reported(p reconcile.Part) report.Decided {
	return report.Decided{Snapshot: p.Snapshot, Proposal: p.Proposal, Plan: p.Plan, Files: p.Files, Refused: p.Refused}
}
