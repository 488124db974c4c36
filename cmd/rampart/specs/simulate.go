package specs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/sim"
)

const formatMermaid = "mermaid"

// simulation is what rampart simulate was asked for.
type simulation struct {
	name, world, at string
	lasts           time.Duration
}

func simulateCommand(a *cmdutil.App) *cobra.Command {
	var (
		output     cmdutil.Choice
		repository cmdutil.RepositoryFlags
		ask        simulation
	)
	cmd := &cobra.Command{
		Use:   "simulate NAME",
		Short: "Print the timetable of a rollout in a scripted world; no Temporal",
		Long: `Simulate plays a rollout on a virtual clock, with the rules and the policies that the bot goes by,
around a small model of Temporal and of the workers. It prints what is committed when, how traffic moves, and by
which rule the rollout is held.

The rollout is the next one of the worker deployment as the folder -C or the branch of --repo has it. If the record
there says that another version is current than the spec asks for, it is that rollout, from where it stands. If the
spec's version is current already, the next image is made up (the tag with -next). Without a record a first version
is created, and the made-up one follows it.

Without --world all goes well: workers poll 20s after their files were committed, gates pass, nothing fails, people
approve after 10m. The world is a file with one Simulation of rampart.dev/v1alpha1, which says what goes otherwise:
gates, failing workflows, outages of Temporal, pushes of images, approvals; "-" is standard input. Freeze windows
are those of the environment's policies, on the virtual clock.

Exit code 0 if the rollout completes; 2 if it is turned back, held, or not complete when the time is up; 1 if it
cannot be simulated.`,
		Example: `  rampart simulate payments/checkout
  rampart simulate checkout --world worlds/failing.yaml
  rampart simulate checkout --at 2026-12-24T15:00:00Z --for 72h -o mermaid`,
		Args:              cmdutil.OneName,
		ValidArgsFunction: a.CompleteName,
		RunE: func(cmd *cobra.Command, args []string) error {
			ask.name = args[0]
			t, err := simulate(cmd.Context(), a, ask, repository)
			if err != nil {
				return err
			}
			return printTimetable(a, output.Value, t)
		},
	}
	cmdutil.AddOutput(cmd, &output, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML, formatMermaid)
	repository.AddReading(cmd)
	cmdutil.AddPolicies(a, cmd)
	f := cmd.Flags()
	f.StringVar(&ask.world, "world", "", "file with a Simulation: what happens meanwhile (default: all goes well)")
	f.StringVar(&ask.at, "at", "",
		"when it begins, such as 2026-01-31T12:00:00Z (default: what the world says, else now)")
	f.DurationVar(&ask.lasts, "for", 0, "how long it lasts at most (default: what the world says, else 336h)")
	cmdutil.CompleteFlag(cmd, "world", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
	})
	return cmd
}

func simulate(ctx context.Context, a *cmdutil.App, ask simulation,
	repository cmdutil.RepositoryFlags) (t rollout.Timetable, err error) {
	script, err := script(a, ask)
	if err != nil {
		return t, err
	}
	source, closeSource, err := a.OpenSource(repository)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	world, s, err := a.ReadDeployment(ctx, source, ask.name)
	if err != nil {
		return t, err
	}
	judges, err := a.Judges(ctx)
	if err != nil {
		return t, err
	}
	defer judges.Close()
	s.Facts = judges.Facts()
	for _, env := range world.Environments {
		if env.Environment.Name == s.Environment.Name {
			t, err = sim.Run(ctx, sim.Input{Snapshot: s, World: script, Judge: judges.Engine(env),
				Next: sim.NextMadeUp})
		}
	}
	return t, err
}

// script is the world of --world, with the flags on top.
func script(a *cmdutil.App, ask simulation) (v1alpha1.SimulationSpec, error) {
	script := v1alpha1.DefaultSimulation()
	if ask.world != "" {
		read, err := readWorld(a, ask.world)
		if err != nil {
			return script, err
		}
		script = read
	}
	if ask.lasts != 0 {
		if ask.lasts < time.Second || ask.lasts > v1alpha1.MaxSimulationFor {
			return script, fmt.Errorf("--for %s is not between 1s and %s", ask.lasts,
				v1alpha1.Duration{Duration: v1alpha1.MaxSimulationFor})
		}
		script.For.Duration = ask.lasts
	}
	if ask.at != "" {
		at, err := time.Parse(time.RFC3339, ask.at)
		if err != nil {
			return script, fmt.Errorf("--at %q is not of the form 2026-01-31T12:00:00Z", ask.at)
		}
		script.At = v1alpha1.NewTime(at)
	}
	if script.At.IsZero() {
		// not before what was committed just now
		script.At = v1alpha1.NewTime(a.Now().Add(time.Second - 1).Truncate(time.Second))
	}
	return script, nil
}

func readWorld(a *cmdutil.App, name string) (v1alpha1.SimulationSpec, error) {
	var out v1alpha1.SimulationSpec
	data, err := a.ReadInput(name)
	if err != nil {
		return out, fmt.Errorf("read --world: %w", err)
	}
	shown := name
	if name == "-" {
		shown = "<stdin>"
	}
	documents, problems := v1alpha1.Decode(shown, data)
	if err := a.SayProblems(problems, fmt.Sprintf("read --world %s: it has errors", shown)); err != nil {
		return out, err
	}
	if len(documents) != 1 {
		return out, fmt.Errorf("read --world %s: it holds %d objects, where one %s of %s is wanted", shown,
			len(documents), v1alpha1.KindSimulation, v1alpha1.RampartAPIVersion)
	}
	world, ok := documents[0].Object.(*v1alpha1.Simulation)
	if !ok {
		return out, fmt.Errorf("read --world %s: it holds a %s, where a %s of %s is wanted", shown,
			cmp.Or(documents[0].Kind, "document without a kind"), v1alpha1.KindSimulation, v1alpha1.RampartAPIVersion)
	}
	return world.Spec, nil
}

// printTimetable prints a simulation. One that does not complete is not fine.
func printTimetable(a *cmdutil.App, format string, t rollout.Timetable) error {
	var err error
	switch format {
	case cmdutil.FormatText:
		_, err = fmt.Fprint(a.Out, report.TimetableText(t, a.Style()))
	case formatMermaid:
		_, err = fmt.Fprint(a.Out, report.Mermaid(t))
	default:
		err = a.Encode(format, t)
	}
	if err == nil && t.Outcome != rollout.OutcomeComplete {
		return cmdutil.Pending(nil)
	}
	return err
}
