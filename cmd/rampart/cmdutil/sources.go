package cmdutil

import (
	"context"
	"fmt"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// SpecSource is what a planner reads specs and records from.
type SpecSource interface {
	reconcile.Source
	reconcile.Surveyor
	reconcile.CommitHistory
	reconcile.RecordHistory
}

var (
	_ SpecSource = (*gitops.Repository)(nil)
	_ SpecSource = folder{}
)

// OpenSource opens what a command reads that writes nothing: the branch of --repo, else the folder -C. close releases
// it.
func (a *App) OpenSource(f RepositoryFlags) (source SpecSource, close func() error, err error) {
	if f.URL == "" {
		if _, err := a.EnterRepository(nil); err != nil {
			return nil, nil, err
		}
		return a.NarrowSpecSource(folder{a.Dir, a.ReadOptions()}), func() error { return nil }, nil
	}
	repo, closeRepo, err := a.OpenShortLived(f)
	if err != nil {
		return nil, nil, err
	}
	return a.NarrowSpecSource(repo), closeRepo, nil
}

// folder is a Source that reads a folder as it is on disk.
type folder struct {
	dir     string
	options []index.Option
}

func (f folder) Read(context.Context) (rollout.World, error) {
	return index.ReadFolder(f.dir, f.options...)
}

// Survey reads the folder as a whole.
func (f folder) Survey(ctx context.Context) (rollout.Survey,
	func(context.Context, []rollout.Snapshot) ([]rollout.Snapshot, error), error) {
	world, err := f.Read(ctx)
	survey, load := reconcile.Surveyed(world)
	return survey, load, err
}

// Origins gives what the snapshots have: a folder has no history.
func (folder) Origins(_ context.Context, snapshots []rollout.Snapshot) ([]rollout.GitContext, error) {
	out := make([]rollout.GitContext, len(snapshots))
	for i, d := range snapshots {
		out[i] = d.Git
	}
	return out, nil
}

// Recorded finds nothing: a folder has no history.
func (folder) Recorded(context.Context, v1alpha1.Environment,
	[]rollout.LostVersions) (map[rollout.Name][]v1alpha1.RecordedVersion, error) {
	return nil, nil
}

// NarrowSource leaves the environment of --env in what a source reads, all without --env.
func (a *App) NarrowSource(s reconcile.Source) reconcile.Source { return oneEnvironment{s, a.Env} }

// NarrowSpecSource does the same for what a planner reads.
func (a *App) NarrowSpecSource(s SpecSource) SpecSource { return oneSurveyed{s, a.Env} }

type oneEnvironment struct {
	reconcile.Source
	name string
}

func (s oneEnvironment) Read(ctx context.Context) (rollout.World, error) {
	world, err := s.Source.Read(ctx)
	if err != nil {
		return world, err
	}
	return OnlyEnvironment(world, s.name)
}

type oneSurveyed struct {
	SpecSource
	name string
}

func (s oneSurveyed) Read(ctx context.Context) (rollout.World, error) {
	return oneEnvironment{s.SpecSource, s.name}.Read(ctx)
}

func (s oneSurveyed) Survey(ctx context.Context) (
	rollout.Survey, func(context.Context, []rollout.Snapshot) ([]rollout.Snapshot, error), error) {
	survey, load, err := s.SpecSource.Survey(ctx)
	if err != nil {
		return survey, load, err
	}
	survey.World, err = OnlyEnvironment(survey.World, s.name)
	return survey, load, err
}

// OnlyEnvironment removes all environments but one; "" removes none. An unknown name is an error, except in a world
// that could not be read: it has no environments, and its problems say why.
func OnlyEnvironment(world rollout.World, name string) (rollout.World, error) {
	if name == "" || len(world.Environments) == 0 {
		return world, nil
	}
	for _, env := range world.Environments {
		if env.Environment.Name == name {
			world.Environments = []rollout.EnvironmentWorld{env}
			return world, nil
		}
	}
	err := NotFound("environment", name, EnvironmentNames(world))
	for _, p := range world.Problems {
		if p.Severity == v1alpha1.Error && p.File == layout.Config {
			return world, fmt.Errorf("%w: %w", err, p)
		}
	}
	return world, err
}
