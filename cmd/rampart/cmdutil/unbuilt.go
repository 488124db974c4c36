package cmdutil

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/source"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// sayUnbuilt reports folders with a kustomization.yaml or a Chart.yaml among paths that were read without a
// rampart.yaml, which names folders to build. It is an error where their files hold no specs as they are.
func (s *Specs) sayUnbuilt(paths []string) error {
	if _, err := os.Stat(filepath.Join(s.Base, layout.Config)); err == nil && s.text == nil {
		return nil
	}
	for _, p := range paths {
		if p == "-" {
			continue
		}
		files, err := WalkFiles(p, ".yaml", ".yml", "")
		if err != nil {
			return err
		}
		for _, f := range files {
			if kind := source.KindOf(filepath.ToSlash(f)); kind != "" {
				s.sayNotBuilt(kind, f, f == p || filepath.Dir(f) == filepath.Clean(p))
			}
		}
	}
	return nil
}

// sayNotBuilt reports that the folder of a marker was not built; named says that its path was given.
func (s *Specs) sayNotBuilt(kind source.Kind, marker string, named bool) {
	dir := filepath.Dir(marker)
	inside := func(file string) bool {
		rel, err := filepath.Rel(dir, s.DisplayPath(file))
		return err == nil && filepath.IsLocal(rel)
	}
	wrong := func(p v1alpha1.Problem) bool { return p.Severity == v1alpha1.Error && inside(p.File) }
	broken, read := slices.ContainsFunc(s.World.Problems, wrong), false
	for _, env := range s.World.Environments {
		broken = broken || slices.ContainsFunc(env.Problems, wrong)
		read = read || slices.ContainsFunc(env.Deployments, func(d rollout.Snapshot) bool {
			return d.Spec != nil && inside(d.SpecPath)
		})
	}
	if !broken && !named {
		return // nothing was asked of it
	}
	build := "kustomize build " + dir
	if kind == source.Helm {
		build = fmt.Sprintf("helm template NAME %s --namespace NAMESPACE", dir)
	}
	p := v1alpha1.Problem{Severity: v1alpha1.Warning, File: s.marker(marker), Message: fmt.Sprintf(
		"%s is not built: only the specs of a rampart.yaml name folders to build. %s, or give the output of %s as "+
			"standard input (-)", dir, nameFolder(dir), build)}
	if broken || !read {
		p.Severity = v1alpha1.Error
		s.World.Problems = slices.DeleteFunc(s.World.Problems, wrong)
		for i := range s.World.Environments {
			s.World.Environments[i].Problems = slices.DeleteFunc(s.World.Environments[i].Problems, wrong)
		}
	}
	s.World.Problems = append(s.World.Problems, p)
}

// marker is the path in the world of a file that a person names.
func (s *Specs) marker(file string) string {
	if rel, err := filepath.Rel(s.Base, file); err == nil {
		file = rel
	}
	return path.Clean(filepath.ToSlash(file))
}

// nameFolder says how a folder is named by a rampart.yaml: by the one above it, if there is one.
func nameFolder(dir string) string {
	full, err := filepath.Abs(dir)
	for at := full; err == nil; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, layout.Config)); err == nil {
			return "Give -C " + at
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	return "Add it to those of an environment"
}
