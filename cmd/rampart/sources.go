package main

import (
	"context"
	"fmt"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// source is where a command that writes nothing reads from: the branch of --repo, else the folder -C. close gives it back.
func (a *app) source(f repositoryFlags) (source reconcile.Source, close func() error, err error) {
	if f.url == "" {
		if err := isFolder(a.dir); err != nil {
			return nil, nil, err
		}
		return a.only(folder{a.dir, a.reading()}), func() error { return nil }, nil
	}
	repo, closeRepo, err := a.shortLived(f, nil)
	if err != nil {
		return nil, nil, err
	}
	return a.only(repo), closeRepo, nil
}

// folder is a Source that reads a folder as it is on disk.
type folder struct {
	dir     string
	options []gitops.Option
}

func (f folder) Read(context.Context) (rollout.World, error) {
	return gitops.ReadFolder(f.dir, f.options...)
}

// only is a source for --env.
func (a *app) only(s reconcile.Source) reconcile.Source {
	if a.env == "" {
		return s
	}
	return oneEnvironment{s, a.env}
}

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

// Survey is Read of the source behind, no more of it than has to be.
func (s oneEnvironment) Survey(ctx context.Context) (rollout.Survey, func(context.Context, []rollout.Snapshot) ([]rollout.Snapshot, error), error) {
	survey, fill, err := surveyOf(ctx, s.Source)
	if err != nil {
		return survey, fill, err
	}
	survey.World, err = onlyEnvironment(survey.World, s.name)
	return survey, fill, err
}

// surveyOf reads a source, no more of it than has to be if it can do so.
func surveyOf(ctx context.Context, source reconcile.Source) (rollout.Survey, func(context.Context, []rollout.Snapshot) ([]rollout.Snapshot, error), error) {
	if s, ok := source.(reconcile.Surveyor); ok {
		return s.Survey(ctx)
	}
	world, err := source.Read(ctx)
	survey, fill := reconcile.Surveyed(world)
	return survey, fill, err
}

// Origins asks the source behind, if that has a history.
func (s oneEnvironment) Origins(ctx context.Context, snapshots []rollout.Snapshot) ([]rollout.GitContext, error) {
	return originsOf(ctx, s.Source, snapshots)
}

// Recorded asks the source behind, if that has a history.
func (s oneEnvironment) Recorded(ctx context.Context, env v1alpha1.Environment, lost []rollout.LostVersions) (map[rollout.Name][]v1alpha1.RecordedVersion, error) {
	return recordedOf(ctx, s.Source, env, lost)
}

func recordedOf(ctx context.Context, source reconcile.Source, env v1alpha1.Environment, lost []rollout.LostVersions) (map[rollout.Name][]v1alpha1.RecordedVersion, error) {
	if archivist, ok := source.(reconcile.Archivist); ok {
		return archivist.Recorded(ctx, env, lost)
	}
	return nil, nil
}

func originsOf(ctx context.Context, source reconcile.Source, snapshots []rollout.Snapshot) ([]rollout.GitContext, error) {
	if historian, ok := source.(reconcile.Historian); ok {
		return historian.Origins(ctx, snapshots)
	}
	out := make([]rollout.GitContext, len(snapshots))
	for i, d := range snapshots {
		out[i] = d.Git
	}
	return out, nil
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
		if p.Severity == v1alpha1.Error && p.File == gitops.ConfigFile {
			return world, fmt.Errorf("%w: %w", err, p)
		}
	}
	return world, err
}
