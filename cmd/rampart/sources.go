package main

import (
	"context"
	"fmt"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// specSource is what a planner reads specs and records from.
type specSource interface {
	reconcile.Source
	reconcile.Surveyor
	reconcile.CommitHistory
	reconcile.RecordHistory
}

var (
	_ specSource = (*gitops.Repository)(nil)
	_ specSource = folder{}
)

// source is where a command that writes nothing reads from: the branch of --repo, else the folder -C. close gives it
// back.
func (a *app) source(f repositoryFlags) (source specSource, close func() error, err error) {
	if f.url == "" {
		if err := isFolder(a.dir); err != nil {
			return nil, nil, err
		}
		return a.onlyOf(folder{a.dir, a.reading()}), func() error { return nil }, nil
	}
	repo, closeRepo, err := a.shortLived(f, nil)
	if err != nil {
		return nil, nil, err
	}
	return a.onlyOf(repo), closeRepo, nil
}

// folder is a Source that reads a folder as it is on disk.
type folder struct {
	dir     string
	options []gitops.Option
}

func (f folder) Read(context.Context) (rollout.World, error) {
	return gitops.ReadFolder(f.dir, f.options...)
}

// Survey reads the folder as a whole.
func (f folder) Survey(ctx context.Context) (rollout.Survey, func(context.Context, []rollout.Snapshot) ([]rollout.Snapshot, error), error) {
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
func (folder) Recorded(context.Context, v1alpha1.Environment, []rollout.LostVersions) (map[rollout.Name][]v1alpha1.RecordedVersion, error) {
	return nil, nil
}

// only is a source for --env.
func (a *app) only(s reconcile.Source) reconcile.Source { return oneEnvironment{s, a.env} }

// onlyOf is what a planner reads for --env.
func (a *app) onlyOf(s specSource) specSource { return oneSurveyed{s, a.env} }

type oneEnvironment struct {
	reconcile.Source
	name string
}

func (s oneEnvironment) Read(ctx context.Context) (rollout.World, error) {
	world, err := s.Source.Read(ctx)
	if err != nil {
		return world, err
	}
	return onlyEnvironment(world, s.name)
}

type oneSurveyed struct {
	specSource
	name string
}

func (s oneSurveyed) Read(ctx context.Context) (rollout.World, error) {
	return oneEnvironment{s.specSource, s.name}.Read(ctx)
}

func (s oneSurveyed) Survey(ctx context.Context) (rollout.Survey, func(context.Context, []rollout.Snapshot) ([]rollout.Snapshot, error), error) {
	survey, load, err := s.specSource.Survey(ctx)
	if err != nil {
		return survey, load, err
	}
	survey.World, err = onlyEnvironment(survey.World, s.name)
	return survey, load, err
}

// onlyEnvironment leaves out all environments but one; "" leaves all. A world that could not be read has none: its
// problems say why.
func onlyEnvironment(world rollout.World, name string) (rollout.World, error) {
	if name == "" || len(world.Environments) == 0 {
		return world, nil
	}
	var known []string
	for _, env := range world.Environments {
		if env.Environment.Name == name {
			world.Environments = []rollout.EnvironmentWorld{env}
			return world, nil
		}
		known = append(known, env.Environment.Name)
	}
	err := notFound("environment", name, known)
	for _, p := range world.Problems {
		if p.Severity == v1alpha1.Error && p.File == layout.Config {
			return world, fmt.Errorf("%w: %w", err, p)
		}
	}
	return world, err
}
