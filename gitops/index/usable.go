package index

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// While rampart.yaml, or one of its environments, cannot be used, traffic goes down by the last one that could. A
// Repository remembers that one, and looks for it in the branch's history where it remembers none. Everything else of a
// world is read as it is: a spec that is reverted meanwhile takes traffic back, too.

// RecentCommits is how many commits of a branch are looked through for what could be used last. What is looked for is
// in one of the last: a bot that runs notices at once, and to look through all of a large history would take very long.
const RecentCommits = 500

// LastUsable is what could be used last. It is nil where nothing is remembered, and nothing has a history.
type LastUsable struct {
	// environments of rampart.yaml, each as it could be used last, in their order; nil: not known.
	environments []v1alpha1.Environment
	// read are environments as they could be read last, by name.
	read map[string]readLast
	// nothing is what was looked for in history without success, by environment: why it was looked for.
	nothing map[string]string
	// earlier visits the trees of the branch's commits, the newest first, until visit says false. It reports whether
	// there are no more of them.
	Earlier func(visit func(tree.Tree) (more bool)) (whole bool)
}

// readLast are the trees that an environment was read from, and its policies.
type readLast struct {
	specs, out     tree.Tree
	policies, data []rollout.TextFile
}

// configuration is a rampart.yaml as it was read.
type configuration struct {
	environments []v1alpha1.ConfiguredEnvironment
	// whole is what is wrong with all of it; nil: each environment says what is wrong with it.
	whole    *v1alpha1.Problem
	problems []v1alpha1.Problem
}

// sound reports whether all of it can be used.
func (c *configuration) sound() bool {
	return c.whole == nil && !slices.ContainsFunc(c.environments, func(e v1alpha1.ConfiguredEnvironment) bool {
		return e.Problem != nil
	})
}

// wrong is a configuration with something wrong with all of it.
func (c configuration) wrong(p v1alpha1.Problem) configuration {
	c.problems, c.whole = append(slices.Clip(c.problems), p), &p
	return c
}

// inForce is an environment as it is in force.
type inForce struct {
	v1alpha1.Environment
	// problem says why it is the last one that could be used; nil: it is the one that rampart.yaml has.
	problem *v1alpha1.Problem
}

// over gives the environments in force: those of the configuration, or their last usable versions. An environment with
// a problem stays as it was in last. While the name of one with a problem is unknown, every environment of last stays,
// since each may be the one. An environment whose output overlaps with that of a kept one stays as it was, too.
func (c *configuration) over(last []v1alpha1.Environment) []inForce {
	if c.whole != nil {
		return allAsBefore(last, c.whole)
	}
	var out []inForce
	var unknown *v1alpha1.Problem // of an environment that may be any
	for _, e := range c.environments {
		switch was := environmentNamed(last, e.Name); {
		case e.Problem == nil:
			out = append(out, inForce{Environment: e.Environment})
		case e.NameProblem || was == nil:
			unknown = e.Problem
		default:
			out = append(out, inForce{*was, e.Problem})
		}
	}
	for _, was := range last {
		if unknown != nil && !slices.ContainsFunc(out, func(e inForce) bool { return e.Name == was.Name }) {
			out = append(out, inForce{was, unknown})
		}
	}
	return apart(out, last)
}

func allAsBefore(last []v1alpha1.Environment, problem *v1alpha1.Problem) []inForce {
	out := make([]inForce, len(last))
	for i, e := range last {
		out[i] = inForce{e, problem}
	}
	return out
}

func environmentNamed(all []v1alpha1.Environment, name string) *v1alpha1.Environment {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// apart keeps outputs apart where an environment is as it was. A new one that overlaps with it is as it was, too, and
// one that never was is left out. Of two old ones that overlap, which are of different commits, neither is used.
func apart(all []inForce, last []v1alpha1.Environment) []inForce {
	for {
		at := slices.IndexFunc(all, func(e inForce) bool {
			return slices.ContainsFunc(all, func(o inForce) bool {
				return o.Name != e.Name && o.problem != nil && overlap(e.Output, o.Output)
			})
		})
		if at < 0 {
			return all
		}
		e := all[at]
		other := all[slices.IndexFunc(all, func(o inForce) bool {
			return o.Name != e.Name && o.problem != nil && overlap(e.Output, o.Output)
		})]
		was := environmentNamed(last, e.Name)
		if e.problem == nil && was != nil && !overlap(was.Output, other.Output) {
			all[at] = inForce{*was, other.problem}
			continue
		}
		all = slices.DeleteFunc(slices.Clone(all), func(x inForce) bool {
			return x.Name == e.Name || x.Name == other.Name && e.problem != nil
		})
	}
}

// overlap reports whether two environments write to the same folder, or one below the other's.
func overlap(a, b v1alpha1.Output) bool {
	if a.Branch != b.Branch && a.Branch != "" && b.Branch != "" {
		return false
	}
	return a.Path == b.Path || strings.HasPrefix(a.Path, b.Path+"/") || strings.HasPrefix(b.Path, a.Path+"/")
}

// environmentsOf are environments without what is wrong with them.
func environmentsOf(all []inForce) []v1alpha1.Environment {
	out := make([]v1alpha1.Environment, len(all))
	for i, e := range all {
		out[i] = e.Environment
	}
	return out
}

// unusable says in a snapshot why its environment is as it could be used last.
func unusable(p *v1alpha1.Problem) *rollout.Problem {
	if p == nil {
		return nil
	}
	return &rollout.Problem{Reason: rollout.InvalidConfiguration,
		Message: p.String() +
			": until it is mended, traffic only goes down, by the configuration that could be used last"}
}

// inForce says which environments are in force, and what is wrong with rampart.yaml. What could be used last is found
// in history, if nothing is remembered.
func (r *Reader) inForce(c configuration) ([]inForce, []v1alpha1.Problem) {
	last := r.last
	if last == nil {
		last = &LastUsable{}
	}
	if !c.sound() && last.environments == nil && last.Earlier != nil {
		last.environments = r.configuredBefore(last)
	}
	out, problems := c.over(last.environments), c.problems
	if missing := c.without(out); missing != "" && r.last != nil {
		problems = append(slices.Clip(problems), v1alpha1.Problem{Severity: v1alpha1.Error, File: layout.Config,
			Message: missing})
	}
	if len(out) > 0 {
		last.environments = environmentsOf(out)
	}
	return out, problems
}

// configuredBefore finds in history what could be used last: what a bot that ran all the time would have in force.
func (r *Reader) configuredBefore(last *LastUsable) []v1alpha1.Environment {
	var back []configuration
	blobs := map[string]bool{}
	last.Earlier(func(t tree.Tree) bool {
		if at, ok, err := tree.Lookup(t, layout.Config); err == nil && ok && at.Hash != "" {
			if blobs[at.Hash] {
				return true
			}
			blobs[at.Hash] = true
		}
		c, err := r.configuration(t)
		if err != nil {
			return true
		}
		back = append(back, c)
		return !c.sound()
	})
	var out []v1alpha1.Environment
	for _, c := range slices.Backward(back) {
		out = environmentsOf(c.over(out))
	}
	return out
}

// without says which environments nothing is known of that could be used; "": none.
func (c *configuration) without(out []inForce) string {
	const so = "nothing moves but by command (rampart rollback NAME)"
	if c.whole != nil && len(out) == 0 {
		return fmt.Sprintf("no configuration that could be used is known, and the last %d commits have none: %s",
			RecentCommits, so)
	}
	var names []string
	for _, e := range c.environments {
		if !slices.ContainsFunc(out, func(o inForce) bool { return o.Name == e.Name }) {
			names = append(names, fmt.Sprintf("%q", e.Name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("environment %s cannot be used, and how it could be used last is not known: in it %s",
		strings.Join(names, ", "), so)
}

// configuration reads rampart.yaml; without one there is one environment, "default". Errors: those of the tree, but for
// a root folder that can never be read.
func (r *Reader) configuration(t tree.Tree) (configuration, error) {
	var c configuration
	entries, err := t.List(".", t.Root())
	if bomb, ok := errors.AsType[*tree.Error](err); ok {
		return c.wrong(v1alpha1.Problem{Severity: v1alpha1.Error, File: bomb.Path, Message: bomb.Error()}), nil
	}
	if err != nil {
		return c, fmt.Errorf("look for %s: %w", layout.Config, err)
	}
	at := slices.IndexFunc(entries, func(e tree.Entry) bool {
		return e.Name == layout.Config && e.Kind != tree.IsStray
	})
	c.problems = nearMisses(entries, at >= 0)
	if at < 0 {
		if p := slices.IndexFunc(c.problems, func(p v1alpha1.Problem) bool {
			return p.Severity == v1alpha1.Error
		}); p >= 0 {
			c.whole = &c.problems[p]
			return c, nil
		}
		for _, e := range v1alpha1.DefaultConfig().Spec.Environments {
			recorded, err := r.recordedEnvironment(t, e.Output.Path)
			if err != nil {
				return c, fmt.Errorf("look for %s: %w", layout.Config, err)
			}
			if recorded != "" && recorded != e.Name {
				return c.wrong(v1alpha1.Problem{Severity: v1alpha1.Error, File: layout.Config, Message: fmt.Sprintf(
					"is gone, and %s has records of environment %s: put it back (git log -- %s)", e.Output.Path,
					recorded, layout.Config)}), nil
			}
			c.environments = append(c.environments, v1alpha1.ConfiguredEnvironment{Environment: e})
		}
		return c, nil
	}
	if entries[at].Kind != tree.IsFile {
		return c.wrong(v1alpha1.Problem{Severity: v1alpha1.Error, File: layout.Config, Message: "is not a file"}), nil
	}
	d, err := r.decode(t, &found{path: layout.Config, hash: entries[at].Hash})
	if err != nil {
		return c, err
	}
	return c.decoded(d), nil
}

// recordedEnvironment is the environment that the first record below a folder was written in; "": no record names one.
// Without this check a lost rampart.yaml would end approvals, and leave its worker deployments to a bot of another
// identity.
func (r *Reader) recordedEnvironment(t tree.Tree, dir string) (string, error) {
	at, ok, err := tree.Lookup(t, dir)
	if err != nil || !ok || at.Kind != tree.IsFolder {
		return "", err
	}
	var in func(dir, hash string, depth int) (string, error)
	in = func(dir, hash string, depth int) (string, error) {
		entries, err := t.List(dir, hash)
		if _, ok := errors.AsType[*tree.Error](err); ok {
			return "", nil // it is reported where the environment is read
		}
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			file := path.Join(dir, e.Name)
			switch {
			case e.Kind == tree.IsFile && e.Name == layout.Routing:
				d, err := r.decode(t, &found{path: file, hash: e.Hash})
				if err != nil {
					return "", err
				}
				for _, doc := range d.documents {
					if routing, ok := doc.Object.(*v1alpha1.Routing); ok && routing.Spec.Environment != "" {
						return routing.Spec.Environment, nil
					}
				}
			case e.Kind == tree.IsFolder && depth > 0:
				if name, err := in(file, e.Hash, depth-1); name != "" || err != nil {
					return name, err
				}
			}
		}
		return "", nil
	}
	return in(dir, at.Hash, recordDepth)
}

// recordDepth is how many folders there are above a record's own below an output that has others below it: environment,
// namespace, name.
const recordDepth = 3

// decoded adds what rampart.yaml says.
func (c configuration) decoded(d decoded) configuration {
	c.problems = append(slices.Clip(c.problems), d.problems...)
	var config *v1alpha1.Document
	for i := range d.documents {
		doc := &d.documents[i]
		isConfig := doc.APIVersion == v1alpha1.RampartAPIVersion && doc.Kind == v1alpha1.KindConfig
		switch {
		case !isConfig && !v1alpha1.HasErrors(doc.Problems):
			return c.wrong(v1alpha1.Problem{Severity: v1alpha1.Error, File: layout.Config, Line: doc.Line,
				Message: fmt.Sprintf("holds a %s; only a %s of %s belongs here",
					cmp.Or(doc.Kind, "document without a kind"), v1alpha1.KindConfig, v1alpha1.RampartAPIVersion)})
		case isConfig && config != nil:
			return c.wrong(v1alpha1.Problem{Severity: v1alpha1.Error, File: layout.Config, Line: doc.Line,
				Message: "holds a second Config"})
		case isConfig:
			config = doc
		}
	}
	if config != nil {
		c.environments, c.whole = config.Configured()
	}
	for _, p := range d.problems { // of the file, or of another document
		if p.Severity == v1alpha1.Error && (config == nil || !slices.Contains(config.Problems, p)) && c.whole == nil {
			c.whole = &p
		}
	}
	if c.whole == nil && len(c.environments) == 0 {
		return c.wrong(v1alpha1.Problem{Severity: v1alpha1.Error, File: layout.Config,
			Message: fmt.Sprintf("holds no Config that can be read: it needs apiVersion: %s and kind: %s, each on a "+
				"line of its own", v1alpha1.RampartAPIVersion, v1alpha1.KindConfig)})
	}
	return c
}

// nearMisses are files at the root that are meant to be rampart.yaml, or may be: beside one they are a warning. Without
// one they are an error, since else everything that they demand, such as approval, would be off.
func nearMisses(entries []tree.Entry, beside bool) []v1alpha1.Problem {
	var out []v1alpha1.Problem
	for _, e := range entries {
		if e.Kind != tree.IsFile && e.Kind != tree.IsOther || !isNearMiss(e.Name) {
			continue
		}
		p := v1alpha1.Problem{Severity: v1alpha1.Error, File: e.Name, Suggestion: layout.Config,
			Message: "is not read: the configuration is in " + layout.Config +
				", and there is none. Rename or remove the file"}
		if beside {
			p.Severity, p.Message = v1alpha1.Warning,
				"is not read: the configuration is in "+layout.Config+". Remove the file"
			p.Suggestion = ""
		}
		out = append(out, p)
	}
	return out
}

// aside matches the names of a rampart.yaml that was set aside (.bak, ~), or has other letters or another extension.
// example matches those that are meant to be copied.
var (
	aside   = regexp.MustCompile(`^[._]*rampart([._ -]conf(ig)?)?[._ -]?(ya?ml|json|toml)([^a-z0-9].*)?$`)
	example = regexp.MustCompile(`[._-](example|sample|template|tmpl|dist|md)$`)
)

// isNearMiss reports whether a file's name is nearly rampart.yaml: with another extension, in other letters, set aside,
// or misspelled.
func isNearMiss(name string) bool {
	if name == layout.Config {
		return false
	}
	lower := strings.ToLower(name)
	if aside.MatchString(lower) {
		return !example.MatchString(lower)
	}
	stem, extension, _ := strings.Cut(strings.TrimLeft(lower, "._"), ".")
	near := stem != "rampart" && v1alpha1.Closest(stem, []string{"rampart"}) != "" && len(stem) >= len("rampart")-1 &&
		len(stem) <= len("rampart")+1
	return near && (extension == "yaml" || extension == "yml")
}
