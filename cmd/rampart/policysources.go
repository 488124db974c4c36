package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
)

// policySet is policies that belong together, with their data and tests.
type policySet struct {
	// environments that have these policies, in the order of rampart.yaml; none for policies that were named by their paths.
	environments []string
	config       policy.Config
}

// policySets are the policies of some paths; without paths those of the environments of the folder -C, each set once.
func (a *app) policySets(paths []string) ([]policySet, error) {
	if len(paths) > 0 {
		cfg, err := readPolicies(paths)
		return []policySet{{config: cfg}}, err
	}
	world, err := a.policyWorld()
	if err != nil {
		return nil, err
	}
	var out []policySet
	for _, env := range world.Environments {
		cfg := a.policiesOf(env)
		same := slices.IndexFunc(out, func(s policySet) bool { return reflect.DeepEqual(s.config, cfg) })
		if same < 0 {
			out = append(out, policySet{config: cfg})
			same = len(out) - 1
		}
		out[same].environments = append(out[same].environments, env.Environment.Name)
	}
	return out, nil
}

// policyWorld reads the folder -C. Errors in rampart.yaml leave no environments, and are said.
func (a *app) policyWorld() (rollout.World, error) {
	if err := isFolder(a.dir); err != nil {
		return rollout.World{}, err
	}
	world, err := gitops.ReadFolder(a.dir, gitops.AllowKinds(a.allowedKinds()))
	if err != nil {
		return world, err
	}
	if len(world.Environments) == 0 {
		return world, a.because(world, errors.New("the repository's configuration cannot be used"))
	}
	return onlyEnvironment(world, a.env)
}

// policiesOf are an environment's policies, their paths as a person knows them.
func (a *app) policiesOf(env rollout.EnvironmentWorld) policy.Config {
	var cfg policy.Config
	show := func(path string) string { return filepath.Join(a.dir, filepath.FromSlash(path)) }
	for _, f := range env.Policies {
		cfg.Modules = append(cfg.Modules, policy.Module{Path: show(f.Path), Source: f.Text})
	}
	for _, f := range env.Data {
		cfg.Data = append(cfg.Data, policy.DataFile{Path: show(f.Path), Content: f.Text})
	}
	return cfg
}

// readPolicies reads files, and what is below folders: .rego files are policies and tests; YAML and JSON files are data.
func readPolicies(paths []string) (policy.Config, error) {
	var cfg policy.Config
	var files []string
	for _, p := range paths {
		found, err := policyFiles(p)
		if err != nil {
			return cfg, err
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	for _, name := range slices.Compact(files) {
		text, err := readFile(name)
		if err != nil {
			return cfg, err
		}
		if filepath.Ext(name) == ".rego" {
			cfg.Modules = append(cfg.Modules, policy.Module{Path: name, Source: text})
		} else {
			cfg.Data = append(cfg.Data, policy.DataFile{Path: name, Content: text})
		}
	}
	return cfg, nil
}

func policyFiles(name string) ([]string, error) {
	kinds := []string{".rego", ".yaml", ".yml", ".json"}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		if !slices.Contains(kinds, filepath.Ext(name)) {
			return nil, fmt.Errorf("%s: neither a policy (.rego) nor data (.yaml, .yml, .json)", name)
		}
		return []string{filepath.Clean(name)}, nil
	}
	var out []string
	err = filepath.WalkDir(name, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.EqualFold(d.Name(), ".git"):
			return filepath.SkipDir
		case d.Type().IsRegular() && slices.Contains(kinds, filepath.Ext(p)):
			out = append(out, filepath.Clean(p))
		}
		return nil
	})
	return out, err
}
