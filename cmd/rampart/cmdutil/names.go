package cmdutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// ErrConfiguration is the error about a world without environments, whose problems say why it has none.
var ErrConfiguration = errors.New("the repository's configuration cannot be used")

// Deployments gives the snapshots that have one of the names, in the world's order; all without names. A name is
// namespace/name, or the name alone where that is unique. An unknown name is an error. Errors: ErrConfiguration.
func Deployments(world rollout.World, names []string) ([]rollout.Snapshot, error) {
	if len(world.Environments) == 0 {
		return nil, ErrConfiguration
	}
	var all []rollout.Snapshot
	var known, short []string
	for _, env := range world.Environments {
		for _, d := range env.Deployments {
			all = append(all, d)
			known, short = append(known, d.Deployment.String()), append(short, d.Deployment.Name)
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	var out []rollout.Snapshot
	for _, name := range names {
		found := slices.DeleteFunc(slices.Clone(all), func(s rollout.Snapshot) bool {
			return s.Deployment.String() != name && (strings.Contains(name, "/") || s.Deployment.Name != name)
		})
		if len(found) == 0 {
			if !strings.Contains(name, "/") && v1alpha1.Closest(name, short) != "" {
				known = short
			}
			return nil, NotFound("worker deployment", name, known)
		}
		out = append(out, found...)
	}
	return out, nil
}

// Deployment gives the one snapshot of that name. An unknown name, or one of several worker deployments, is an error.
func Deployment(world rollout.World, name string) (rollout.Snapshot, error) {
	found, err := Deployments(world, []string{name})
	if err != nil {
		return rollout.Snapshot{}, err
	}
	if len(found) > 1 {
		var which []string
		for _, s := range found {
			which = append(which, fmt.Sprintf("%s in environment %s", s.Deployment, s.Environment.Name))
		}
		return rollout.Snapshot{}, fmt.Errorf("%q names %s: write the namespace, or choose with --env", name,
			strings.Join(which, " and "))
	}
	return found[0], nil
}

// ReadDeployment reads the world of a source, and finds the one worker deployment of that name. Where it is not there
// it says what is wrong with the files, which may be why.
func (a *App) ReadDeployment(ctx context.Context, from reconcile.Source, name string) (world rollout.World,
	s rollout.Snapshot, err error) {
	if world, err = from.Read(ctx); err != nil {
		return world, s, err
	}
	if s, err = Deployment(world, name); err != nil {
		err = a.SayWorldProblems(world, err)
	}
	return world, s, err
}

// NoDeployments reports whether the world has no worker deployment, though its environments could be read.
func NoDeployments(world rollout.World) bool {
	return len(world.Environments) > 0 && !slices.ContainsFunc(world.Environments,
		func(e rollout.EnvironmentWorld) bool { return len(e.Deployments)+len(e.Entries) > 0 })
}

// SayNoSpecs says on standard error where no specs were found, and what a spec is.
func (a *App) SayNoSpecs(world rollout.World, where string) {
	a.Say("no worker deployments found in %s", where)
	for _, env := range world.Environments {
		e := env.Environment
		beside := ""
		if e.Output.Branch == "" {
			beside = fmt.Sprintf(", but for those below %s, where the bot writes", path.Clean(e.Output.Path))
		}
		a.Say("  environment %s has specs in %s%s", e.Name, strings.Join(e.Specs, ", "), beside)
	}
	a.Say("  a spec is a YAML file with kind: %s and apiVersion: %s", v1alpha1.KindTemporalWorkerDeployment,
		v1alpha1.TemporalAPIVersion)
}

// JoinFirst lists the first names, as many as most says, and how many there are more.
func JoinFirst(names []string, most int) string {
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// NotFound returns the error that there is no object of that name, with the nearest name, else the known ones.
func NotFound(what, name string, known []string) error {
	slices.Sort(known)
	known = slices.Compact(known)
	if near := v1alpha1.Closest(name, known); near != "" {
		return fmt.Errorf("there is no %s %q (did you mean %s?)", what, name, near)
	}
	const most = 10
	list := cmp.Or(JoinFirst(known, most), "none")
	return fmt.Errorf("there is no %s %q; there is: %s", what, name, list)
}

// OneName is the cobra.PositionalArgs of a command that takes the name of one worker deployment.
func OneName(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("%s NAME: name one worker deployment, such as payments/checkout; given were %d",
		cmd.CommandPath(), len(args))
}

// NoArgs is the cobra.PositionalArgs of a command without arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, not %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// Parent is the RunE of a command that has others below it: it shows its help, or says that there is no such command.
func Parent(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return UnknownCommand(cmd, args[0])
}

// UnknownCommand is the error for a subcommand that a parent does not have, with the nearest that it has.
func UnknownCommand(parent *cobra.Command, name string) error {
	var known []string
	for _, c := range parent.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	err := fmt.Errorf("unknown command %q", parent.CommandPath()+" "+name)
	if near := v1alpha1.Closest(name, known); near != "" {
		return fmt.Errorf("%w (did you mean %s?)", err, near)
	}
	return fmt.Errorf("%w\n  run %q to see what there is", err, parent.CommandPath()+" --help")
}

// OneOf is the cobra.PositionalArgs of a command that takes one of some words, or with a least of 0 none.
func OneOf(least int, words ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > 1 || len(args) == 1 && !slices.Contains(words, args[0]) {
			return fmt.Errorf("%s: want one of %s", cmd.UseLine(), strings.Join(words, ", "))
		}
		return nil
	}
}
