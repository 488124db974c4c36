package preview

import (
	"context"
	"path"
	"reflect"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/sim"
	"github.com/rampart-gitops/rampart/policy"
)

// Policies are those of the environment, which the change cannot change.
type Policies interface {
	sim.Judge
	Explain(ctx context.Context, d *policy.Document, actionID string) (rollout.Explanation, error)
	ClauseLooksAt(pkg, location, part string) bool
}

var _ Policies = (*policy.Engine)(nil)

// Input is what a preview of one worker deployment is made of.
type Input struct {
	// Before and After are its snapshots, without an observation; nil: it is not there. One of them is.
	Before, After *rollout.Snapshot
	Policies      Policies
	// Spec are findings of the policies on the spec itself, after the merge.
	Spec []SpecFinding
	// World is the script of the simulation; its At must be set.
	World v1alpha1.SimulationSpec
	// Missing are locations of findings that stand for policies that are not here.
	Missing []string
}

// SpecFinding is a finding on a spec, and the line of the spec that it is about; 0: it is not known.
type SpecFinding struct {
	rollout.Finding
	Line int
}

// What of a worker deployment can change.
const (
	ThroughSpec       = "spec"
	ThroughPath       = "path"
	ThroughConnection = "connection"
	ThroughResources  = "resources"
	ThroughProblems   = "problems"
	// ThroughReferences says that objects which versions name are removed.
	ThroughReferences = "references"
)

// Changes says what of a worker deployment differs between two snapshots; none: nothing that matters.
func Changes(before, after *rollout.Snapshot) []string {
	var none rollout.Snapshot
	if before == nil {
		before = &none
	}
	if after == nil {
		after = &none
	}
	var out []string
	for _, c := range []struct {
		name   string
		differ bool
	}{
		{ThroughSpec, !reflect.DeepEqual(before.Spec, after.Spec)},
		{ThroughPath, before.SpecPath != after.SpecPath},
		{ThroughConnection, !reflect.DeepEqual(before.Connection, after.Connection) ||
			!reflect.DeepEqual(before.LastConnection, after.LastConnection)},
		{ThroughResources, !reflect.DeepEqual(before.Resources, after.Resources) ||
			!reflect.DeepEqual(before.ResourcesProblem, after.ResourcesProblem)},
		{ThroughProblems, !reflect.DeepEqual(before.Problems, after.Problems)},
		{ThroughReferences, after.LosesReferences()},
	} {
		if c.differ {
			out = append(out, c.name)
		}
	}
	return out
}

// Deployment previews one worker deployment. The error is the context's.
func Deployment(ctx context.Context, in Input) (report.Previewed, error) {
	at := in.After
	if at == nil {
		at = in.Before
	}
	out := report.Previewed{Environment: at.Environment.Name, Name: at.Deployment.String(), SpecPath: at.SpecPath,
		Through: Changes(in.Before, in.After), Recorded: report.NewRecordedRouting(at.Record)}
	if err := ctx.Err(); err != nil {
		return out, err // many are behind each other
	}
	var before, after Target
	var problem error
	if in.Before != nil && in.Before.Spec != nil {
		before, _ = NewTarget(*in.Before) // what is wrong with it is not the change's
		out.From = before.BuildID
		if out.From == "" {
			out.From, _ = rollout.BuildIDFor(in.Before.Spec.Spec, in.Before.Record.Versions())
		}
	}
	if usable(in.After) {
		after, problem = NewTarget(*in.After)
		out.To, _ = rollout.BuildIDFor(in.After.Spec.Spec, in.After.Record.Versions())
		if problem == nil {
			out.Files = compare(before, after)
		}
	}
	out.Change = kindOf(in, out)
	out.Then = then(out)
	places := &places{policies: in.Policies, known: map[string]rollout.Explanation{}}
	sortSpec(ctx, in, places, &out)
	switch {
	case problem != nil:
		out.Untimed = problem.Error()
	case usable(in.After) && out.Change != report.ChangeNothing:
		simulate(ctx, in, places, &out)
	}
	return out, ctx.Err()
}

func usable(s *rollout.Snapshot) bool { return s != nil && s.Spec != nil && len(s.Problems) == 0 }

// compare pairs the manifests of two versions by their names within the versions' folders.
func compare(before, after Target) []report.File {
	byName := map[string]*rollout.TextFile{}
	for i := range before.Files {
		byName[path.Base(before.Files[i].Path)] = &before.Files[i]
	}
	var out []report.File
	for i := range after.Files {
		is := &after.Files[i]
		name := path.Base(is.Path)
		was := byName[name]
		delete(byName, name)
		if was == nil || was.Text != is.Text {
			out = append(out, report.NewComparison(was, is))
		}
	}
	if before.BuildID != after.BuildID {
		return out // an earlier version keeps its files
	}
	for i := range before.Files {
		if was := &before.Files[i]; byName[path.Base(was.Path)] == was {
			out = append(out, report.NewComparison(was, nil))
		}
	}
	return out
}

// kindOf says what a change does.
func kindOf(in Input, p report.Previewed) report.ChangeKind {
	switch {
	case in.After != nil && len(in.After.Problems) > 0:
		return report.ChangeBroken
	case in.After == nil || in.After.Spec == nil:
		return report.ChangeGone
	case retired(in.After) && !retired(in.Before):
		return report.ChangeRetire
	}
	made := rollout.FindVersion(in.After.Record.Versions(), p.To) != nil
	known := in.Before != nil && in.Before.Spec != nil
	switch {
	case known && p.From == p.To && len(p.Files) == 0:
	case made && known && p.From == p.To:
		return report.ChangeUpdate
	case made:
		return report.ChangeEarlier
	case len(in.After.Record.Versions()) > 0:
		return report.ChangeVersion
	default:
		return report.ChangeNew
	}
	was, is := in.Before.Spec.Spec, in.After.Spec.Spec
	if !reflect.DeepEqual(was.Rollout, is.Rollout) || !reflect.DeepEqual(was.Sunset, is.Sunset) {
		return report.ChangeStrategy
	}
	return report.ChangeNothing
}

func retired(s *rollout.Snapshot) bool {
	return s != nil && s.Spec != nil && s.Spec.Metadata.Annotations[rollout.AnnotationRetire] == "true"
}

// then says in words what happens; none of them is somebody else's.
func then(p report.Previewed) string {
	recorded := p.Recorded != nil && p.Recorded.Versions > 0
	switch p.Change {
	case report.ChangeNew:
		if p.From != "" {
			return "Nothing of it is in Git yet but its spec: this is its first version, which becomes current once " +
				"its workers poll."
		}
		return "A new worker deployment: its first version is created, and becomes current once its workers poll."
	case report.ChangeVersion:
		return "A new version is created beside those that are in Git, and rolled out."
	case report.ChangeEarlier:
		return "A version that is in Git already is asked for again."
	case report.ChangeUpdate:
		return "No new version: its workers are changed in place, by Kubernetes' rolling update."
	case report.ChangeStrategy:
		return "No manifest changes, only how versions are rolled out and ended. The timetable is that of the next " +
			"version, whose image is made up."
	case report.ChangeRetire:
		return "It is retired: its traffic is taken away, and its versions are removed once nothing needs them."
	case report.ChangeGone:
		if !recorded {
			return "Its spec is gone. Git has nothing else of it, so nothing happens."
		}
		return "Its spec is gone: the bot holds and reports it, nothing moves, nothing is removed, and its versions " +
			"go on running. To end it, retire it " +
			"first (the annotation " + rollout.AnnotationRetire + " on the spec, or the command rampart retire)."
	case report.ChangeBroken:
		return "Its spec cannot be used: what runs is kept, and no version gets more traffic until it is mended."
	}
	return "Nothing that is rendered changes, and no traffic moves."
}

// simulate plays the rollout, and sorts what policies say in it.
func simulate(ctx context.Context, in Input, places *places, out *report.Previewed) {
	next := sim.NextNothing
	if out.Change == report.ChangeStrategy {
		next = sim.NextMadeUp
	}
	listener := &listener{judge: in.Policies, heard: map[ruleKey]heard{}}
	t, err := sim.Run(ctx, sim.Input{Snapshot: *in.After, World: in.World, Judge: listener, Next: next})
	if err != nil {
		out.Untimed = err.Error()
	} else {
		out.Timetable = &t
	}
	listener.sort(ctx, in, places, out)
}
