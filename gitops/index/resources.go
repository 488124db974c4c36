package index

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// options are what reading goes by beside the files: the bot's own configuration, never the repository's.
type options struct {
	// kinds that a WorkerResourceTemplate may make; nil: the default.
	kinds []string
	// partial says that only some of the files are read: what these lack may be elsewhere.
	partial bool
	// approval is what environments have to want at least.
	approval []ApprovalFloor
	// allowed is what environments may name.
	allowed Allowed
	// builder builds folders of specs; nil: none is.
	builder Builder
	// locate picks the worker deployments whose references are located; nil: none.
	locate Locating
}

// Option changes how files are read.
type Option func(*options)

// AllowKinds says which kinds a WorkerResourceTemplate may make; an empty list allows none. Without it they are those
// of v1alpha1.DefaultResourceKinds.
func AllowKinds(kinds []string) Option {
	return func(o *options) { o.kinds = append([]string{}, kinds...) }
}

// SomeFiles says that there are more files than those that are read: what they name may be elsewhere.
func SomeFiles() Option { return func(o *options) { o.partial = true } }

func (o options) resourceKinds() []string {
	if o.kinds == nil {
		return v1alpha1.DefaultResourceKinds()
	}
	return o.kinds
}

// resourcesIn looks at the templates among documents, once for each content of a file.
func resourcesIn(documents []v1alpha1.Document) map[int]v1alpha1.Resource {
	var out map[int]v1alpha1.Resource
	for i := range documents {
		if t, ok := documents[i].Object.(*v1alpha1.WorkerResourceTemplate); ok {
			if out == nil {
				out = map[int]v1alpha1.Resource{}
			}
			out[i] = t.Spec.Resource()
		}
	}
	return out
}

// resourceTemplates are an environment's WorkerResourceTemplates.
type resourceTemplates struct {
	// all of them, in the order of their files, and those that have one name.
	all   []*templateAt
	named map[rollout.Name]*templatesAt
	// of are those of each worker deployment.
	of map[rollout.Name][]*templateAt
	// broken ones may be of any worker deployment in their namespace.
	broken map[string][]*templateAt
	// adrift are those of worker deployments that are not there.
	adrift []*templateAt
	// missed says that a file could not be read, so that there may be more.
	missed *v1alpha1.Problem
}

// templateAt is a WorkerResourceTemplate and where it is.
type templateAt struct {
	name     rollout.Name
	doc      *v1alpha1.Document
	nth      int                                  // document of its file
	spec     *v1alpha1.WorkerResourceTemplateSpec // nil: it has problems
	resource v1alpha1.Resource
	problem  *v1alpha1.Problem
	// copied says that the template is one of equal copies, and that none of them is at the recorded path.
	copied bool
}

func (t *templateAt) place() place { return place{t.doc.File, t.doc.Line, t.nth} }

func (t *templateAt) deployment() rollout.Name {
	return rollout.Name{Namespace: t.name.Namespace, Name: t.spec.Deployment()}
}

// unread notes a file in which there may be templates that are not known. The file is not YAML, one of its
// documents could be a misspelled template, or its content is elsewhere.
func (r *resourceTemplates) unread(f *found, d decoded) {
	known := []string{v1alpha1.KindTemporalWorkerDeployment, v1alpha1.KindWorkerDeployment,
		v1alpha1.KindTemporalConnection,
		v1alpha1.KindConnection, v1alpha1.KindClusterConnection, v1alpha1.KindConfig, v1alpha1.KindWaiver,
		v1alpha1.KindRouting}
	for _, p := range d.problems {
		if p.Severity != v1alpha1.Error && !d.elsewhere || r.missed != nil {
			continue
		}
		at := slices.IndexFunc(d.documents, func(doc v1alpha1.Document) bool {
			return slices.Contains(doc.Problems, p)
		})
		if at >= 0 {
			doc := &d.documents[at]
			if slices.Contains(known, doc.Kind) || doc.Kind == v1alpha1.KindWorkerResourceTemplate && doc.Name != "" {
				continue
			}
		}
		missed := p
		missed.File = f.path
		r.missed = &missed
	}
}

func firstError(problems []v1alpha1.Problem) *v1alpha1.Problem {
	for _, p := range problems {
		if p.Severity == v1alpha1.Error {
			return &p
		}
	}
	return nil
}

// template adds a template. What is wrong with it beside its own content is reported once.
func (e *environment) template(t templateAt) {
	switch {
	case t.spec == nil:
	case t.name.Namespace == "":
		t.problem = e.templateFault(&t, "metadata.namespace",
			"is required: the environment %s has no default namespace", e.world.Environment.Name)
	case !v1alpha1.AllowsKind(e.options.resourceKinds(), t.resource.APIVersion, t.resource.Kind):
		t.problem = e.templateFault(&t, "spec.template.kind",
			"a template may not make %s here; the bot's configuration allows %s "+
				"(--allowed-resource-kinds)", kindIn(t.resource, e.options.resourceKinds()),
			orNone(e.options.resourceKinds()))
	case e.world.Environment.ResourceKinds != nil &&
		!v1alpha1.AllowsKind(e.world.Environment.ResourceKinds, t.resource.APIVersion, t.resource.Kind):
		t.problem = e.templateFault(&t, "spec.template.kind",
			"a template may not make %s in environment %s, which allows %s "+
				"(resourceKinds in %s)", kindIn(t.resource, e.world.Environment.ResourceKinds),
			e.world.Environment.Name,
			orNone(e.world.Environment.ResourceKinds), layout.Config)
	}
	e.resources.all = append(e.resources.all, &t)
	e.resources.addNamed(&t)
}

// kindIn names a kind, with its group where some of another group are allowed.
func kindIn(r v1alpha1.Resource, kinds []string) string {
	if slices.Contains(kinds, r.Kind) {
		return r.Kind + " of " + r.APIVersion
	}
	return r.Kind
}

func orNone(kinds []string) string {
	if len(kinds) == 0 {
		return "none"
	}
	return strings.Join(kinds, ", ")
}

// templateFault reports an error at a field of a template.
func (e *environment) templateFault(t *templateAt, field, format string, args ...any) *v1alpha1.Problem {
	p := v1alpha1.Problem{Severity: v1alpha1.Error, File: t.doc.File, Path: field,
		Message: fmt.Sprintf(format, args...)}
	p.Line, p.Column = t.doc.Position(field)
	e.world.Problems = append(e.world.Problems, p)
	return &p
}

// assign gives the templates to worker deployments.
func (e *environment) assign(deployments []deploymentAt) {
	r := &e.resources
	r.of, r.broken = map[rollout.Name][]*templateAt{}, map[string][]*templateAt{}
	for _, t := range r.all {
		switch {
		case t.spec == nil || t.name.Namespace == "":
			r.broken[t.name.Namespace] = append(r.broken[t.name.Namespace], t)
		case isAmong(deployments, t.deployment()):
			r.of[t.deployment()] = append(r.of[t.deployment()], t)
		default:
			r.adrift = append(r.adrift, t)
		}
	}
}

// isAmong says whether a worker deployment is among others, which are sorted by name.
func isAmong(deployments []deploymentAt, n rollout.Name) bool {
	_, ok := slices.BinarySearchFunc(deployments, n, func(d deploymentAt, n rollout.Name) int {
		return d.name.Compare(n)
	})
	return ok
}

// chooseResources picks the templates of a worker deployment, sorted by name.
func (e *environment) chooseResources(s *rollout.Snapshot) {
	if p := e.resources.missed; p != nil {
		s.ResourcesProblem = &rollout.Problem{Reason: rollout.InvalidSpec, Message: p.String()}
	}
	for _, t := range e.resources.of[s.Deployment] {
		if !e.chooseTemplate(s, t) {
			continue
		}
		if t.problem == nil {
			t.problem = e.unfit(s, t)
		}
		addResource(s, t)
	}
	for _, namespace := range []string{s.Deployment.Namespace, ""} {
		for _, t := range e.resources.broken[namespace] {
			if hasResource(s, t.name.Name) {
				addResource(s, t)
			}
		}
	}
	slices.SortFunc(s.Resources, func(a, b rollout.ResourceTemplate) int { return strings.Compare(a.Name, b.Name) })
}

func addResource(s *rollout.Snapshot, t *templateAt) {
	if slices.ContainsFunc(s.Resources, func(r rollout.ResourceTemplate) bool { return r.Name == t.name.Name }) {
		return // one of several with this name
	}
	r := rollout.ResourceTemplate{Name: t.name.Name, Path: t.doc.File, Copied: t.copied}
	if t.spec != nil {
		r.Object, r.Versions = t.spec.Template, t.spec.Versions
		r.Hash, r.Scales, r.ApplyTo = t.resource.Hash, t.resource.Scales, t.spec.ApplyTo
	}
	if t.problem != nil {
		r.Problem = &rollout.Problem{Reason: rollout.InvalidSpec, Message: t.problem.String()}
	}
	s.Resources = append(s.Resources, r)
}

// hasResource reports whether a version has an object of a template of this name.
func hasResource(s *rollout.Snapshot, template string) bool {
	return slices.ContainsFunc(s.Record.Versions(), func(v v1alpha1.RecordedVersion) bool {
		return slices.ContainsFunc(v.Resources, func(r v1alpha1.RecordedResource) bool {
			return r.Template == template
		})
	})
}

// unfit says why a template does not go with its worker deployment.
func (e *environment) unfit(s *rollout.Snapshot, t *templateAt) *v1alpha1.Problem {
	if s.Spec == nil {
		return nil
	}
	for _, pool := range s.Spec.Spec.Pools {
		if pool.Name == t.name.Name {
			return e.templateFault(t, "metadata.name",
				"%s has a pool of this name, and their files would be the same: choose another name", s.Deployment)
		}
	}
	if !t.resource.MetricLabels {
		return nil
	}
	for _, label := range []string{s.Deployment.Namespace + "_" + s.Deployment.Name,
		s.Spec.Spec.WorkerOptions.TemporalNamespace} {
		if len(validation.IsValidLabelValue(label)) > 0 {
			return e.templateFault(t, "spec.template.spec.metrics",
				"selects a metric by the label %q, which is filled in and cannot be a label's value: "+
					"at most 63 characters, a letter or digit first and last", label)
		}
	}
	return nil
}

// place is where a document is: the nth of its file, and on no line where it was built.
type place struct {
	file string
	line int
	nth  int
}

// reportAdrift reports each template that no environment has a worker deployment for. The environments are in the order
// of the world.
func reportAdrift(world *rollout.World, envs []*environment) {
	claimed := map[place]bool{}
	for _, e := range envs {
		for _, list := range e.resources.of {
			for _, t := range list {
				claimed[t.place()] = true
			}
		}
	}
	for i, e := range envs {
		env := &world.Environments[i]
		for _, t := range e.resources.adrift {
			if claimed[t.place()] {
				continue
			}
			p := v1alpha1.Problem{Severity: v1alpha1.Error, File: t.doc.File, Path: t.spec.RefPath(),
				Message: fmt.Sprintf("worker deployment %s is not in the repository: nothing is made from "+
					"this template", t.deployment()),
				Suggestion: v1alpha1.Closest(t.spec.Deployment(), namesIn(env))}
			if e.options.partial {
				p.Severity, p.Message = v1alpha1.Warning,
					fmt.Sprintf("worker deployment %s is not among the given files", t.deployment())
			}
			p.Line, p.Column = t.doc.Position(p.Path)
			env.Problems = append(env.Problems, p)
		}
	}
}

// namesIn are the names of an environment's worker deployments.
func namesIn(env *rollout.EnvironmentWorld) []string {
	var out []string
	for i := range env.Deployments {
		out = append(out, env.Deployments[i].Deployment.Name)
	}
	for _, d := range env.Entries {
		out = append(out, d.Deployment.Name)
	}
	return out
}
