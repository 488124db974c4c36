package index

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
)

// patterns are those of a field of rampart.yaml, policies, data or specs, and where they were looked for.
type patterns struct {
	field string
	globs []string
	at    []globAt
}

// reportPatterns reports what is wrong with patterns, and with what is where they look for files in a tree.
func (e *environment) reportPatterns(from tree.Tree, prefix string, of patterns) error {
	if err := e.unmatched(from, of); err != nil {
		return err
	}
	if err := e.linked(of); err != nil {
		return err
	}
	e.leftOut(of, prefix)
	return nil
}

// unmatched reports patterns of rampart.yaml that match no file.
//
// A pattern with a wildcard may wait for its first file, and is a warning. A plain path of policies or data names a
// file that is meant to be there: without it a protection would be off silently, so it is held against what policies
// judge.
func (e *environment) unmatched(from tree.Tree, of patterns) error {
	field := of.field
	for i, glob := range of.globs {
		if of.at[i].fits() {
			continue
		}
		wild := strings.ContainsAny(glob, `*?[{\`)
		if e.options.partial && (wild || field == specsField) {
			continue
		}
		p, ok, err := e.atPattern(fmt.Sprintf("%s[%d]", field, i))
		if err != nil || !ok {
			return err
		}
		p.Message = fmt.Sprintf("%s: %s matches no file", field, glob)
		if !wild {
			at, there, err := tree.Lookup(from, glob)
			if err != nil {
				return err
			}
			if there && at.Kind == tree.IsFolder {
				p.Message = fmt.Sprintf("%s: %s is a folder, and matches no file: for all files below it write %q",
					field, glob, path.Clean(glob)+"/**")
			}
		}
		if e.options.partial {
			p.Message += " among the given files"
		}
		if e.options.partial || wild || field == specsField {
			e.world.Problems = append(e.world.Problems, p)
		} else {
			p.Severity = v1alpha1.Error
			e.world.PolicyProblems = append(e.world.PolicyProblems, p)
		}
	}
	return nil
}

// linked reports symbolic links and submodules that are where a field's patterns look for files. They are never
// followed. One that is itself policies or data would be off silently: it is held against what policies judge.
func (e *environment) linked(of patterns) error {
	field := of.field
	for i, glob := range of.globs {
		for _, link := range of.at[i].all.links {
			named, err := doublestar.Match(glob, link)
			if err != nil || !named && !strings.Contains(glob, "**") {
				continue
			}
			p, ok, err := e.atPattern(fmt.Sprintf("%s[%d]", field, i))
			if err != nil || !ok {
				return err
			}
			p.Message = fmt.Sprintf("%s: %s is a symbolic link or a submodule, and is not followed: put a file there",
				field, link)
			if named && field != specsField {
				p.Severity = v1alpha1.Error
				e.world.PolicyProblems = append(e.world.PolicyProblems, p)
			} else {
				e.world.Problems = append(e.world.Problems, p)
			}
		}
	}
	return nil
}

// leftOut reports what is left out of the folders in which a field's patterns look for files.
func (e *environment) leftOut(of patterns, prefix string) {
	for i, at := range of.at {
		if slices.ContainsFunc(of.at[:i], func(earlier globAt) bool { return earlier.all == at.all }) {
			continue
		}
		for _, s := range at.all.strays {
			e.world.Problems = append(e.world.Problems, tree.StrayProblem(v1alpha1.Warning, prefix+s.dir, s.name))
		}
	}
}

const specsField = "specs"

// atPattern is a warning, still without a message, at a field of the environment in rampart.yaml. False: there is no
// rampart.yaml.
func (e *environment) atPattern(field string) (v1alpha1.Problem, bool, error) {
	from, prefix := e.ruling(e.tree)
	at, ok, err := tree.Lookup(from, layout.Config)
	if err != nil || !ok {
		return v1alpha1.Problem{}, false, err
	}
	d, err := e.decode(from, &found{path: layout.Config, hash: at.Hash})
	if err != nil {
		return v1alpha1.Problem{}, false, err
	}
	p := v1alpha1.Problem{Severity: v1alpha1.Warning, File: prefix + layout.Config}
	for i := range d.documents {
		all, _ := d.documents[i].Configured()
		n := slices.IndexFunc(all, func(env v1alpha1.ConfiguredEnvironment) bool {
			return env.Name == e.world.Environment.Name
		})
		if n < 0 {
			continue
		}
		p.Line, _ = d.documents[i].Position(fmt.Sprintf("spec.environments[%d].%s", n, field))
		break
	}
	return p, true, nil
}
