package specs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/preview"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/bundle"
)

// maxPreviewed is how many worker deployments of one change are previewed: each is a simulation.
const maxPreviewed = 1000

type previewing struct {
	app    *cmdutil.App
	merge  *gitops.Merge
	judges *cmdutil.Judges
	// missing are bundles of the bot's own policies that are not in the cache.
	missing []string
	// ownPolicies says that the bot has policies of its own.
	ownPolicies bool
	// known and own are the names of all environments of the base, and of the change.
	known, own []string
}

func openPreview(ctx context.Context, a *cmdutil.App, ask previewFlags) (*previewing, error) {
	if _, err := a.EnterRepository(nil); err != nil {
		return nil, err
	}
	judges, err := a.OpenJudges()
	if err != nil {
		return nil, err
	}
	query := gitops.MergeQuery{Dir: a.Dir, Base: ask.base, Head: ask.head}
	merge, err := gitops.ReadMerge(ctx, query, a.ReadOptions(judges.LocateReferences())...)
	if err != nil {
		judges.Close()
		return nil, err
	}
	r, err := newPreviewing(a, merge, judges, ask)
	if err != nil {
		judges.Close()
		return nil, errors.Join(err, merge.Close())
	}
	return r, nil
}

func newPreviewing(a *cmdutil.App, merge *gitops.Merge, judges *cmdutil.Judges,
	ask previewFlags) (r *previewing, err error) {
	r = &previewing{app: a, merge: merge, judges: judges,
		known: cmdutil.EnvironmentNames(merge.After), own: cmdutil.EnvironmentNames(merge.Own)}
	if len(merge.Before.Environments) == 0 {
		return nil, fmt.Errorf("%s of %s cannot be used: %w", layout.Config, ask.base, firstOf(merge.Before.Problems))
	}
	if err := r.narrow(a.Env); err != nil {
		return nil, err
	}
	r.missing, r.ownPolicies = r.judges.MissingBundles()
	return r, nil
}

// narrow leaves one environment, by its name in the base or in the change. The base has none that is new with the
// change.
func (r *previewing) narrow(name string) (err error) {
	m, was := r.merge, name
	for from, to := range r.renamed() {
		if to.Environment.Name == name {
			was = from
		}
	}
	for _, world := range []*rollout.World{&m.Before, &m.After} {
		if !slices.Contains(r.known, was) && slices.Contains(r.own, name) {
			world.Environments = nil
		} else if *world, err = cmdutil.OnlyEnvironment(*world, was); err != nil {
			return err
		}
	}
	if own, err := cmdutil.OnlyEnvironment(m.Own, name); err == nil { // the change may have renamed it
		m.Own = own
	}
	return nil
}

func (r *previewing) close() error {
	r.judges.Close()
	return r.merge.Close()
}

// pair is one worker deployment before and after.
type pair struct {
	env           rollout.EnvironmentWorld
	before, after *rollout.Snapshot
}

func (p pair) name() rollout.Name { return cmp.Or(p.after, p.before).Deployment }

// pairs are all worker deployments, in the order of environments and names.
func (r *previewing) pairs() []pair {
	var out []pair
	for i := range r.merge.After.Environments {
		env := &r.merge.After.Environments[i]
		byName := map[rollout.Name]*pair{}
		for j := range env.Deployments {
			byName[env.Deployments[j].Deployment] = &pair{env: *env, after: &env.Deployments[j]}
		}
		for _, was := range r.merge.Before.Environments {
			for j := range was.Deployments {
				if was.Environment.Name != env.Environment.Name {
					continue
				}
				name := was.Deployments[j].Deployment
				if byName[name] == nil {
					byName[name] = &pair{env: *env}
				}
				byName[name].before = &was.Deployments[j]
			}
		}
		var of []pair
		for _, p := range byName {
			of = append(of, *p)
		}
		slices.SortFunc(of, func(a, b pair) int { return a.name().Compare(b.name()) })
		out = append(out, of...)
	}
	slices.SortStableFunc(out, func(a, b pair) int {
		return cmp.Compare(a.env.Environment.Name, b.env.Environment.Name)
	})
	return out
}

func (r *previewing) run(ctx context.Context, script v1alpha1.SimulationSpec) (report.Preview, error) {
	m := r.merge
	out := report.Preview{Base: report.Commit(m.Base), Head: report.Commit(m.Head), Fork: report.Commit(m.Fork),
		At:       script.At.Time,
		Problems: []v1alpha1.Problem{}, Deployments: []report.Previewed{}, Unjudged: r.unjudged(),
		Notes: r.notes(script.At.Time)}
	var changed []pair
	for _, p := range r.pairs() {
		if len(preview.Changes(p.before, p.after)) > 0 {
			changed = append(changed, p)
		} else {
			out.Unchanged++
		}
	}
	judged := cmdutil.Specs{World: m.After, WholeRepository: true, BasePrefix: m.BasePrefix(), FileText: m.Read,
		Environments: r.known}
	v, err := r.validate(ctx, judged)
	if err != nil {
		return out, err
	}
	base, err := r.ofBase(ctx)
	if err != nil {
		return out, err
	}
	out.Problems = append(out.Problems, r.problems(v, base, &out)...)
	if n := len(changed); n > maxPreviewed {
		next := changed[maxPreviewed]
		out.Problems = append(out.Problems, v1alpha1.Problem{Severity: v1alpha1.Error,
			File: cmp.Or(next.after, next.before).SpecPath,
			Message: fmt.Sprintf("the change touches %d worker deployments; the first %d are previewed: make several "+
				"changes of it", n, maxPreviewed)})
		changed = changed[:maxPreviewed]
	}
	out.Deployments = make([]report.Previewed, len(changed))
	facts := r.judges.Facts()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, p := range changed {
		in := preview.Input{Before: p.before, Policies: r.judges.Engine(p.env), World: script, Spec: specFindings(v, p)}
		for _, name := range r.missing {
			in.Missing = append(in.Missing, bundle.Prefix+name)
		}
		if p.after != nil {
			after := *p.after
			after.Facts = facts
			in.After = &after
		}
		group.Go(func() (err error) {
			out.Deployments[i], err = preview.Deployment(ctx, in)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return out, err
	}
	for i, p := range changed {
		if p.after != nil {
			out.Deployments[i].Line, _ = judged.Position(*p.after, "metadata.name")
		}
	}
	out.Conclude()
	return out, nil
}

// specFindings are what policies say of the spec of a worker deployment.
func specFindings(v validation, p pair) []preview.SpecFinding {
	var out []preview.SpecFinding
	for _, f := range v.Findings {
		if f.Environment == p.env.Environment.Name && f.Deployment == p.name().String() {
			out = append(out, preview.SpecFinding{Finding: f.Finding, Line: f.Line})
		}
	}
	return out
}

// validate checks the change as rampart validate --base does.
func (r *previewing) validate(ctx context.Context, judged cmdutil.Specs) (validation, error) {
	m := r.merge
	head := cmdutil.Specs{World: m.Own, WholeRepository: true, FileText: m.Read, Environments: r.own}
	return judgeChange(ctx, r.app, changedSpecs{head: head, judged: judged, all: m.After, base: m.Base.Name}, r.judges)
}

func (r *previewing) ofBase(ctx context.Context) (validation, error) {
	m := r.merge
	return validate(ctx, r.app, cmdutil.Specs{World: m.Before, WholeRepository: true, BasePrefix: m.BasePrefix(),
		FileText: m.ReadBase, Environments: r.known}, r.judges)
}

// problems are those of the change: what is wrong with the base already is counted.
func (r *previewing) problems(v, base validation, out *report.Preview) []v1alpha1.Problem {
	m := r.merge
	type key struct {
		severity            v1alpha1.Severity
		file, path, message string
	}
	keyOf := func(p v1alpha1.Problem) key {
		return key{p.Severity, strings.TrimPrefix(p.File, m.BasePrefix()), p.Path, p.Message}
	}
	there := map[key]bool{}
	for _, p := range base.Problems {
		there[keyOf(p)] = true
	}
	var list []v1alpha1.Problem
	old := 0
	for _, p := range v.Problems {
		if strings.HasPrefix(p.File, m.BasePrefix()) || there[keyOf(p)] {
			old++
			continue
		}
		list = append(list, p)
	}
	if old > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("what is wrong with %s already is not shown (problems: %d)",
			m.Base.Name, old))
	}
	list = append(list, r.unclaimed()...)
	for _, file := range m.Conflicts {
		list = append(list, v1alpha1.Problem{Severity: v1alpha1.Warning, File: file, Message: fmt.Sprintf(
			"%s changed this file too: what is previewed is the file of the change, without that; merge or "+
				"rebase first", m.Base.Name)})
	}
	cmdutil.SortProblems(list)
	return list
}

// unjudged are the parts of the change that judge, by which it is not judged itself.
func (r *previewing) unjudged() []string {
	m := r.merge
	out := []string{}
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	own := map[string]rollout.EnvironmentWorld{}
	for _, env := range m.Own.Environments {
		own[env.Environment.Name] = env
	}
	renamed := r.renamed()
	for _, was := range m.Before.Environments {
		name := was.Environment.Name
		is, there := own[name]
		delete(own, name)
		if to, ok := renamed[name]; ok {
			say("%s: environment %s is renamed to %s", layout.Config, name, to.Environment.Name)
			is, there = to, true
			delete(own, to.Environment.Name)
			// else the settings differ by these
			was.Environment.Name, was.Environment.ManagerIdentity = to.Environment.Name, to.Environment.ManagerIdentity
		}
		switch {
		case !there:
			say("%s: it has no environment %s any more, or cannot be read", layout.Config, name)
			continue
		case !reflect.DeepEqual(was.Environment, is.Environment):
			say("%s: the settings of environment %s", layout.Config, name)
		}
		for _, part := range []struct {
			what    string
			was, is []rollout.TextFile
		}{{"policies", was.Policies, is.Policies}, {"data of policies", was.Data, is.Data}} {
			for _, file := range differing(part.was, part.is, m.BasePrefix()) {
				say("%s of environment %s: %s", part.what, name, file)
			}
		}
		for _, waiver := range waiversDiffer(was, is) {
			say("waiver of environment %s: %s", name, waiver)
		}
	}
	for _, name := range cmdutil.SortedKeys(own) {
		say("%s: the new environment %s, whose worker deployments are previewed once %s has it", layout.Config, name,
			m.Base.Name)
	}
	if n := m.WrittenCount; n > 0 {
		say("files that the bot writes (%d): %s. The records of %s count here; rampart plan shows what the bot does "+
			"about an edit", n,
			cmdutil.JoinFirst(m.Written, 5), m.Base.Name)
	}
	return out
}

// renamed are the environments that the change adds in place of one that it takes away, by the name of that. They write
// to its folder, or have one of its worker deployments.
func (r *previewing) renamed() map[string]rollout.EnvironmentWorld {
	before, own := r.merge.Before.Environments, r.merge.Own.Environments
	named := func(list []rollout.EnvironmentWorld, name string) bool {
		return slices.ContainsFunc(list, func(e rollout.EnvironmentWorld) bool { return e.Environment.Name == name })
	}
	out := map[string]rollout.EnvironmentWorld{}
	for _, was := range before {
		if named(own, was.Environment.Name) {
			continue
		}
		added := slices.DeleteFunc(slices.Clone(own), func(e rollout.EnvironmentWorld) bool {
			return named(before, e.Environment.Name)
		})
		for _, replaces := range []func(was, is rollout.EnvironmentWorld) bool{sameOutput, shareDeployment} {
			if i := slices.IndexFunc(added, func(is rollout.EnvironmentWorld) bool {
				return replaces(was, is)
			}); i >= 0 {
				out[was.Environment.Name] = added[i]
				break
			}
		}
	}
	return out
}

// sameOutput reports whether two environments write to the same folder of the same branch.
func sameOutput(a, b rollout.EnvironmentWorld) bool {
	at, to := a.Environment.Output, b.Environment.Output
	return path.Clean(at.Path) == path.Clean(to.Path) && at.Branch == to.Branch
}

// shareDeployment reports whether two environments have a worker deployment in common.
func shareDeployment(a, b rollout.EnvironmentWorld) bool {
	return slices.ContainsFunc(a.Deployments, func(d rollout.Snapshot) bool {
		return slices.ContainsFunc(b.Deployments, func(other rollout.Snapshot) bool {
			return other.Deployment == d.Deployment
		})
	})
}

// unclaimed warns of environments that lose what they manage by their new names.
func (r *previewing) unclaimed() []v1alpha1.Problem {
	var out []v1alpha1.Problem
	renamed := r.renamed()
	for _, was := range r.merge.Before.Environments {
		to, ok := renamed[was.Environment.Name]
		if old := was.Environment.ManagerIdentity; ok && old != to.Environment.ManagerIdentity {
			out = append(out, v1alpha1.Problem{Severity: v1alpha1.Warning, File: layout.Config, Message: fmt.Sprintf(
				"environment %s is renamed to %s, and its manager identity changes with it: in Temporal its worker "+
					"deployments are managed by %[3]s, "+
					"so the bot would not move their traffic. Set managerIdentity: %[3]s for %[2]s, or run rampart "+
					"adopt for each worker deployment",
				was.Environment.Name, to.Environment.Name, old)})
		}
		if left := r.leftBehind(was); len(left) > 0 {
			out = append(out, v1alpha1.Problem{Severity: v1alpha1.Warning, File: layout.Config, Message: fmt.Sprintf(
				"the records of %s stay in %s, where no environment looks any more: the bot would stop managing "+
					"their versions, and an environment with another output would start "+
					"without them. Keep the output, or move its folder along", cmdutil.JoinFirst(left, 5),
				path.Clean(was.Environment.Output.Path))})
		}
	}
	return out
}

// leftBehind are the worker deployments of an environment of the base whose records stay where no environment of the
// change writes.
func (r *previewing) leftBehind(was rollout.EnvironmentWorld) []string {
	own, folder := r.merge.Own.Environments, path.Clean(was.Environment.Output.Path)+"/"
	writes := func(is rollout.EnvironmentWorld) bool { return sameOutput(was, is) }
	moves := func(file string) bool { return strings.HasPrefix(file, folder) }
	if len(own) == 0 || slices.ContainsFunc(own, writes) || slices.ContainsFunc(r.merge.Written, moves) {
		return nil
	}
	var left []string
	for _, d := range was.Deployments {
		if d.Record.Routing != nil {
			left = append(left, d.Deployment.String())
		}
	}
	return left
}

// differing are the names of files that two lists do not have alike.
func differing(was, is []rollout.TextFile, prefix string) []string {
	texts := map[string][2]string{}
	for i, list := range [][]rollout.TextFile{was, is} {
		for _, f := range list {
			name := strings.TrimPrefix(f.Path, prefix)
			both := texts[name]
			both[i] = "+" + f.Text
			texts[name] = both
		}
	}
	var out []string
	for _, name := range cmdutil.SortedKeys(texts) {
		if texts[name][0] != texts[name][1] {
			out = append(out, name)
		}
	}
	return out
}

// waiversDiffer are the names of waivers that two environments do not have alike.
func waiversDiffer(was, is rollout.EnvironmentWorld) []string {
	of := func(env rollout.EnvironmentWorld) []v1alpha1.Waiver {
		if len(env.Deployments) == 0 {
			return nil
		}
		return env.Deployments[0].Waivers // all have the same
	}
	var out []string
	missing := func(from, in []v1alpha1.Waiver) {
		for _, w := range from {
			if !slices.ContainsFunc(in, func(o v1alpha1.Waiver) bool { return reflect.DeepEqual(w, o) }) {
				out = append(out, w.Metadata.Name)
			}
		}
	}
	missing(of(was), of(is))
	missing(of(is), of(was))
	slices.Sort(out)
	return slices.Compact(out)
}

// notes say what cannot be known here.
func (r *previewing) notes(at time.Time) []string {
	m := r.merge
	out := []string{fmt.Sprintf("Temporal was not asked: where traffic goes is what the records say in %s, a commit "+
		"of %s, %s before the merge", m.Base.Name,
		m.Base.When.Format("2006-01-02 15:04 UTC"), report.Age(at.Sub(m.Base.When)))}
	if m.Fork.Commit != m.Base.Commit {
		out = append(out, fmt.Sprintf("%s has moved on since %s: what is previewed is the change on top of it",
			m.Base.Name, m.Fork.Commit[:12]))
	}
	for _, branch := range m.Absent {
		out = append(out, fmt.Sprintf("the output branch %s is not here, so nothing is known of what was rolled out: "+
			"fetch it, as refs/remotes/origin/%s", branch, branch))
	}
	for _, name := range r.missing {
		out = append(out, fmt.Sprintf("the policy bundle %s is not in the cache and is not downloaded: what it says "+
			"is unknown", name))
	}
	if !r.ownPolicies {
		out = append(out, "policies of the bot's own, if it has any, have no say here: give them with --policy-dir")
	}
	for _, env := range m.After.Environments {
		if r.judges.Engine(env).Looks().At("git") {
			out = append(out, fmt.Sprintf("policies of environment %s look at the commit, its author or its "+
				"signature, which there is only once it is merged",
				env.Environment.Name))
		}
	}
	return out
}
