package gitops

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// unmatched reports patterns of rampart.yaml that match none of the files found by them. field is policies, data or specs.
//
// A pattern with a wildcard may wait for its first file, and is a warning. A plain path of policies or data names a file that is
// meant to be there: without it a protection would be off silently, so it is held against what policies judge.
func (e *environment) unmatched(from tree, field string, globs []string, files []found) error {
	for i, glob := range globs {
		if slices.ContainsFunc(files, func(f found) bool { ok, err := doublestar.Match(glob, f.path); return ok && err == nil }) {
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
			at, there, err := lookup(from, glob)
			if err != nil {
				return err
			}
			if there && at.kind == dirEntry {
				p.Message = fmt.Sprintf("%s: %s is a folder, and matches no file: for all files below it write %q", field, glob, path.Clean(glob)+"/**")
			}
		}
		switch {
		case e.options.partial:
			p.Message += " among the given files"
			e.world.Problems = append(e.world.Problems, p)
		case wild || field == specsField:
			e.world.Problems = append(e.world.Problems, p)
		default:
			p.Severity = v1alpha1.Error
			e.world.PolicyProblems = append(e.world.PolicyProblems, p)
		}
	}
	return nil
}

const specsField = "specs"

// atPattern is a warning, still without a message, at a field of the environment in rampart.yaml. False: there is no rampart.yaml.
func (e *environment) atPattern(field string) (v1alpha1.Problem, bool, error) {
	from, prefix := e.ruling(e.tree)
	at, ok, err := lookup(from, ConfigFile)
	if err != nil || !ok {
		return v1alpha1.Problem{}, false, err
	}
	d, err := e.decode(from, found{ConfigFile, at.hash})
	if err != nil {
		return v1alpha1.Problem{}, false, err
	}
	p := v1alpha1.Problem{Severity: v1alpha1.Warning, File: prefix + ConfigFile}
	for i := range d.documents {
		c, ok := d.documents[i].Object.(*v1alpha1.Config)
		if !ok {
			continue
		}
		n := slices.IndexFunc(c.Spec.Environments, func(env v1alpha1.Environment) bool { return env.Name == e.world.Environment.Name })
		p.Line, _ = d.documents[i].Position(fmt.Sprintf("spec.environments[%d].%s", n, field))
		break
	}
	return p, true, nil
}
