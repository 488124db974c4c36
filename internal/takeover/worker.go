package takeover

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

type worker struct {
	*importer
	*object
	spec       *v1alpha1.WorkerDeployment
	path       string // of the spec
	connection *v1alpha1.Connection
	// connectionPath is the file that the connection is in.
	connectionPath string
	// scaled says that a template's object owns the replicas of its versions.
	scaled   bool
	versions []version
}

func (i *importer) worker(o *object) {
	before := len(i.problems)
	w := &worker{importer: i, object: o}
	if !w.readSpec() || !w.findConnection() {
		return
	}
	for _, t := range i.named {
		if t, ok := t.object.(*v1alpha1.WorkerResourceTemplate); ok && t.Metadata.Namespace == o.name.Namespace &&
			t.Spec.Deployment() == o.name.Name {
			w.scaled = w.scaled || t.Spec.Resource().Scales
		}
	}
	for _, d := range i.deployments {
		if w.owns(d) {
			w.version(d)
		}
	}
	if v1alpha1.HasErrors(i.problems[before:]) { // what is missing would be said twice
		return
	}
	slices.SortStableFunc(w.versions, func(a, b version) int {
		return cmp.Or(a.record.CreatedAt.Compare(b.record.CreatedAt.Time),
			strings.Compare(a.record.BuildID, b.record.BuildID))
	})
	target := w.target()
	w.allThere()
	if v1alpha1.HasErrors(i.problems[before:]) {
		return
	}
	w.writeRecord(target)
}

// readSpec reads the spec, and finds it in the repository or writes it.
func (w *worker) readSpec() bool {
	d, ok := w.decode(w.object)
	if !ok {
		return false
	}
	w.spec, w.path = d.Object.(*v1alpha1.WorkerDeployment), w.fileOf(w.object)
	there, ok := w.named[named{v1alpha1.KindWorkerDeployment, w.name}]
	if !ok || there.path == w.path {
		w.write(w.path, w.source())
		return true
	}
	if !same(there.object, d.Object) {
		w.fail(w.object, "spec",
			"it is not what %s has: make the two the same, or take it out of that file", there.path)
		return false
	}
	// as it is written there: its template's hash is that of this text
	w.spec, w.path = there.object.(*v1alpha1.WorkerDeployment), there.path
	return true
}

func (w *worker) findConnection() bool {
	ref := w.spec.Spec.WorkerOptions.ConnectionRef
	as := named{v1alpha1.KindConnection, rollout.Name{Namespace: ref.Of(w.name.Namespace), Name: ref.Name}}
	if as.name.Namespace == "" {
		as.kind = v1alpha1.KindClusterConnection
	}
	there, ok := w.named[as]
	if !ok {
		w.fail(w.object, "spec.workerOptions.connectionRef",
			"%s is neither among the objects nor in the repository: read it too", ref.In(w.name.Namespace))
		return false
	}
	w.connection, w.connectionPath = there.object.(*v1alpha1.Connection), there.path
	return true
}

// owns reports whether a Deployment is one of the worker deployment's versions.
func (w *worker) owns(d *object) bool {
	label := rollout.SelectorLabels(w.name.Name, "")[rollout.LabelDeploymentName]
	return d.name.Namespace == w.name.Namespace &&
		text(d.value, "metadata", "labels", rollout.LabelDeploymentName) == label
}

// target is the build ID of the version that the spec asks for; "": the controller did not make it yet, which is an
// error.
func (w *worker) target() string {
	id := rollout.CleanBuildID(w.spec.Spec.WorkerOptions.UnsafeCustomBuildID)
	custom := id != ""
	if !custom {
		id = text(w.value, "status", "targetVersion", "buildID")
	}
	v := w.find(id)
	if id == "" || v == nil {
		w.fail(w.object, "status.targetVersion",
			"the version that the spec asks for has no Deployment among the objects: read Deployments too, "+
				"and if there is none, wait until the controller has made it")
		return ""
	}
	hash := text(v.live.value, "spec", "template", "metadata", "annotations", rollout.AnnotationPodTemplateHash)
	switch {
	case hash == w.spec.Spec.Template.ControllerHash(), !custom && w.observed():
		v.record.TemplateHash = rollout.TemplateHash(w.spec.Spec)
		if custom {
			v.record.BuildIDFrom = v1alpha1.BuildIDCustom
		}
		return id
	}
	w.fail(w.object, "spec.template",
		"it is not the template that %s was made from, and the status is not of this spec: wait until the controller "+
			"has seen it, and read again", v.live)
	return ""
}

// observed reports whether the status is of the spec as it is.
func (w *worker) observed() bool {
	generation, known := number(w.value, "metadata", "generation")
	return known && slices.ContainsFunc(objects(w.value, "status", "conditions"), func(c map[string]any) bool {
		seen, ok := number(c, "observedGeneration")
		return ok && seen == generation
	})
}

func (w *worker) find(buildID string) *version {
	at := slices.IndexFunc(w.versions, func(v version) bool { return v.record.BuildID == buildID })
	if at < 0 {
		return nil
	}
	return &w.versions[at]
}

// allThere reports versions that the status names and that have no Deployment among the objects: the bot would not look
// after them.
func (w *worker) allThere() {
	missing := func(of map[string]any, field string) {
		if id := text(of, "buildID"); id != "" && w.find(id) == nil {
			w.fail(w.object, field, "version %s has no Deployment among the objects: read Deployments too. If it is "+
				"gone, wait until the controller has seen that, and read again", id)
		}
	}
	if current, ok := at(w.value, "status", "currentVersion").(map[string]any); ok {
		missing(current, "status.currentVersion")
	}
	for _, v := range objects(w.value, "status", "deprecatedVersions") {
		missing(v, "status.deprecatedVersions")
	}
	current, target := text(w.value, "status", "currentVersion", "buildID"),
		text(w.value, "status", "targetVersion", "buildID")
	if current != target && target != "" {
		w.warn(w.object, "status.targetVersion",
			"its rollout is in progress (%s): the bot goes on with it by the spec's steps, and runs its gate again",
			cmp.Or(text(w.value, "status", "targetVersion", "status"), "unknown"))
	}
}

// writeRecord writes the files of the versions, and the record by which the bot goes on.
func (w *worker) writeRecord(target string) {
	env := w.in.Environment
	options := w.spec.Spec.WorkerOptions
	record := v1alpha1.RoutingSpec{
		WorkerDeployment: w.name.String(), TemporalNamespace: options.TemporalNamespace, Environment: env.Name,
		ManagerIdentity: env.ManagerIdentity, SpecPath: w.path,
		Connection: &v1alpha1.RecordedConnection{Kind: w.connection.Ref().Kind, Name: w.connection.Metadata.Name,
			Spec: w.connection.Spec, Path: w.connectionPath},
	}
	plan := rollout.Plan{Deployment: w.name, Environment: env,
		Dir: path.Join(env.Output.Path, w.name.Namespace, w.name.Name), Record: &record}
	out := Deployment{Name: w.name.String(), SpecPath: w.path, Target: target,
		ManagerIdentity: text(w.value, "status", "managerIdentity")}
	for _, v := range w.versions {
		record.Versions = append(record.Versions, v.record)
		plan.Versions = append(plan.Versions, v.write)
		out.Versions = append(out.Versions, v.record.BuildID)
	}
	changes, err := render.Files(plan, rollout.Record{Dir: plan.Dir})
	if err != nil {
		w.fail(w.object, "", "%v", err)
		return
	}
	for _, c := range changes {
		w.files[c.Path] = c.Data
	}
	w.dirs = append(w.dirs, w.name.String())
	w.out.Deployments = append(w.out.Deployments, out)
}
