package index

import (
	"cmp"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// templatesAt are the templates with one name, in the order of their files.
type templatesAt struct {
	duplicates
	all []*templateAt
	// stays names the recorded file that exists without the template, so that no template of this name counts; "" if
	// the file is gone.
	stays string
}

// addNamed adds a template to those of its name. One without a namespace is another error.
func (r *resourceTemplates) addNamed(t *templateAt) {
	if t.name.Namespace == "" {
		return
	}
	if r.named == nil {
		r.named = map[rollout.Name]*templatesAt{}
	}
	g := r.named[t.name]
	if g == nil {
		g = &templatesAt{duplicates: duplicates{kind: "template", name: t.name}}
		g.equal = func(i, j int) bool { return i == j || sameTemplate(g.all[i], g.all[j]) }
		r.named[t.name] = g
	}
	g.at, g.all = append(g.at, t.place()), append(g.all, t)
}

// sameTemplate reports whether two templates of one name make the same of the same versions.
func sameTemplate(a, b *templateAt) bool {
	return a.spec != nil && b.spec != nil && a.resource.Hash == b.resource.Hash && a.deployment() == b.deployment() &&
		slices.Equal(a.spec.Versions, b.spec.Versions)
}

// recordedResource is what a record has of a template: by the newest version with an object of it.
func recordedResource(s *rollout.Snapshot, template string) (path, hash string) {
	for _, v := range slices.Backward(s.Record.Versions()) {
		for _, r := range v.Resources {
			if r.Template == template {
				return r.Path, r.Hash
			}
		}
	}
	return "", ""
}

// chooseTemplate says whether a template counts for its worker deployment, if only as one that cannot be used.
func (e *environment) chooseTemplate(s *rollout.Snapshot, t *templateAt) bool {
	g := e.resources.named[t.name]
	if g == nil {
		return true
	}
	recorded, hash := recordedResource(s, t.name.Name)
	was := recordedAs{stays: e.stays(recorded), path: func(i int) bool { return g.at[i].file == recorded },
		rendered: func(i int) bool {
			return g.all[i].spec != nil && hash != "" && g.all[i].resource.Hash == hash &&
				g.all[i].deployment() == s.Deployment
		}}
	k := g.keeper(was)
	if k >= 0 {
		g.keep(k)
		if g.all[k] == t {
			t.copied = g.copied(k) && !was.path(k)
			return true
		}
		if g.all[k].spec == nil || g.all[k].deployment() == s.Deployment {
			return false
		}
	}
	i := slices.Index(g.all, t)
	var message string
	if was.stays && !slices.ContainsFunc(g.at, func(p place) bool { return p.file == recorded }) {
		g.stays, message = recorded, e.sayStays("template", t.name, recorded)
	} else {
		_, message = g.says(i)
	}
	t.problem = cmp.Or(t.problem, &v1alpha1.Problem{Severity: v1alpha1.Error, File: t.doc.File, Line: g.at[i].line,
		Path: "metadata.name", Message: message})
	return true
}

// reportTemplates reports templates that have one name.
func (e *environment) reportTemplates() {
	for _, t := range e.resources.all {
		g := e.resources.named[t.name]
		switch {
		case g == nil || g.all[0] != t: // it was looked at with the first one
		case len(g.all) > 1:
			e.report(&g.duplicates)
		case g.stays != "":
			e.world.Problems = append(e.world.Problems, *t.problem)
		}
	}
}
