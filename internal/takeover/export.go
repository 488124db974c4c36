package takeover

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// Export is what a worker deployment is to the in-cluster controller: objects in the order in which they are applied.
type Export struct {
	Objects []rollout.TextFile
	// Warnings say what the controller does not have.
	Warnings []string
}

// shortestPause is the least that the controller takes for a step.
const shortestPause = 30 * time.Second

// ToController gives the objects of a worker deployment as the in-cluster controller wants them. These are its
// connection, its templates and its spec; and with its live object among the texts of owners, its Deployments, owned by
// that. Without the owner's UID there are none: the garbage collector of the cluster would delete Deployments whose
// owner does not exist.
//
// A version that the controller would give another build ID is named by unsafeCustomBuildID, so that it goes on with
// the pods that run. Errors: what the controller cannot have, a spec or connection that cannot be used, a version that
// the spec asks for and that has no files yet.
func ToController(s rollout.Snapshot, owners []rollout.TextFile) (Export, error) {
	e := &exporter{s: s}
	if err := e.spec(); err != nil {
		return Export{}, fmt.Errorf("export %s: %w", s.Deployment, err)
	}
	if len(owners) > 0 {
		if err := e.deployments(owners); err != nil {
			return Export{}, fmt.Errorf("export %s: %w", s.Deployment, err)
		}
	}
	return e.out, nil
}

type exporter struct {
	s   rollout.Snapshot
	out Export
}

func (e *exporter) add(kind, name string, value any) error {
	data, err := render.YAML(value)
	if err == nil {
		e.out.Objects = append(e.out.Objects, rollout.TextFile{Path: path.Join(e.s.Deployment.Namespace,
			strings.ToLower(kind)+"-"+name+".yaml"), Text: string(data)})
	}
	return err
}

func (e *exporter) warn(format string, args ...any) {
	e.out.Warnings = append(e.out.Warnings, e.s.Deployment.String()+": "+fmt.Sprintf(format, args...))
}

// spec gives the connection, the templates and the spec.
func (e *exporter) spec() error {
	s := e.s
	switch {
	case s.Spec == nil && len(s.Problems) > 0:
		return fmt.Errorf("%s", s.Problems[0].Message)
	case s.Spec == nil:
		return fmt.Errorf("it has no spec in the repository")
	case s.Record.Routing == nil:
		return fmt.Errorf("%s has no record of it that can be read: there is nothing that the controller could "+
			"take over", s.Record.Dir)
	case s.Connection == nil:
		return fmt.Errorf("%s is not in the repository",
			s.Spec.Spec.WorkerOptions.ConnectionRef.In(s.Deployment.Namespace))
	}
	c := *s.Connection
	if err := e.add(c.Kind, c.Metadata.Name, c); err != nil {
		return err
	}
	for _, t := range s.Resources {
		if err := e.template(t); err != nil {
			return err
		}
	}
	user := *s.Spec
	user.Status, user.Metadata.Name, user.Metadata.Namespace = nil, s.Deployment.Name, s.Deployment.Namespace
	user.Metadata.Annotations = maps.Clone(user.Metadata.Annotations)
	maps.DeleteFunc(user.Metadata.Annotations, func(key, _ string) bool {
		return v1alpha1.KeyOwner(key) != "" || key == rollout.AnnotationRetire
	})
	if err := e.ownFields(&user.Spec); err != nil {
		return err
	}
	id, _ := rollout.BuildIDFor(s.Spec.Spec, s.Record.Versions())
	if rollout.FindVersion(s.Record.Versions(), id) == nil {
		return fmt.Errorf("the spec asks for %s, which has no files yet: let the bot make it, or take the change back",
			id)
	}
	if rollout.ControllerBuildID(user.Spec) != id {
		user.Spec.WorkerOptions.UnsafeCustomBuildID = id
		e.warn("unsafeCustomBuildID: %s keeps the controller from making another version of the same template. Take "+
			"it out with the next change of the template, "+
			"or that becomes a rolling update in place", id)
	}
	if user.Spec.Sunset.Evacuate != nil {
		user.Spec.Sunset.Evacuate = nil
		e.warn("the controller has no spec.sunset.evacuate: it is left out")
	}
	return e.worker(user)
}

// worker gives the spec, without fields that are always written and that the controller's definition does not have.
func (e *exporter) worker(user v1alpha1.WorkerDeployment) error {
	data, err := json.Marshal(user)
	if err != nil {
		return err
	}
	object, err := v1alpha1.DecodeJSON(data)
	if err != nil {
		return err
	}
	if rollout, ok := at(object, "spec", "rollout").(map[string]any); ok {
		delete(rollout, "rollback")
		if gate, ok := rollout["gate"].(map[string]any); ok {
			delete(gate, "timeout")
			delete(gate, "onFailure")
		}
	}
	return e.add(user.Kind, user.Metadata.Name, object)
}

// ownFields takes out of a spec what only Rampart has. What would change how the workers run, or when they get traffic,
// is an error.
func (e *exporter) ownFields(spec *v1alpha1.WorkerDeploymentSpec) error {
	if len(spec.Pools) > 0 {
		return fmt.Errorf("the controller has no spec.pools and would leave their Deployments alone: roll out a " +
			"version without pools first")
	}
	if len(spec.Strategy) > 0 {
		spec.Strategy = nil
		e.warn("the controller has no spec.strategy: it is left out")
	}
	r := &spec.Rollout
	if r.Analysis != nil {
		r.Analysis = nil
		e.warn("the controller has no spec.rollout.analysis: it judges no candidate by metrics, and turns none back")
	}
	if r.Gate != nil {
		if timeout := r.Gate.Timeout.Duration; r.Gate.OnFailure == v1alpha1.GateRollback ||
			timeout != 0 && timeout != time.Hour {
			e.warn("the controller has no onFailure and no timeout of spec.rollout.gate: they are left out")
		}
	}
	r.Steps = slices.Clone(r.Steps)
	for i := range r.Steps {
		step, field := &r.Steps[i], fmt.Sprintf("spec.rollout.steps[%d]", i)
		switch {
		case step.RampPercentage != math.Trunc(step.RampPercentage):
			return fmt.Errorf("%s.rampPercentage: the controller has whole percentages, not %v", field,
				step.RampPercentage)
		case step.PauseDuration.Duration < shortestPause:
			return fmt.Errorf("%s.pauseDuration: the controller wants %s at least, not %s", field, shortestPause,
				step.PauseDuration.Duration)
		case step.Gate != nil:
			step.Gate = nil
			e.warn("the controller has no gates of steps: %s.gate is left out", field)
		}
	}
	return nil
}

func (e *exporter) template(t rollout.ResourceTemplate) error {
	if t.Problem != nil {
		return fmt.Errorf("template %s: %s", t.Name, t.Problem.Message)
	}
	if len(t.Versions) > 0 {
		e.warn("the controller has no spec.versions of WorkerResourceTemplate %s: each version gets the object", t.Name)
	}
	for _, r := range e.s.Record.Versions() {
		if !rollout.Scaled(r.Resources) && t.WaitsForNew(r.Replicas) {
			e.warn("the controller has no spec.applyTo of WorkerResourceTemplate %s: version %s gets the object too",
				t.Name, r.BuildID)
		}
	}
	ref := "workerDeploymentRef"
	if e.s.Spec.Kind == v1alpha1.KindTemporalWorkerDeployment {
		ref = "temporalWorkerDeploymentRef"
	}
	return e.add(v1alpha1.KindWorkerResourceTemplate, t.Name, map[string]any{
		"apiVersion": v1alpha1.TemporalAPIVersion, "kind": v1alpha1.KindWorkerResourceTemplate,
		"metadata": map[string]any{"name": t.Name, "namespace": e.s.Deployment.Namespace},
		"spec":     json.RawMessage(fmt.Sprintf(`{"template":%s,%q:{"name":%q}}`, t.Object, ref, e.s.Deployment.Name)),
	})
}

// deployments gives the Deployments of all versions, with the owner by which the controller finds them.
func (e *exporter) deployments(owners []rollout.TextFile) error {
	live, problems := read(owners)
	if len(problems) > 0 {
		return problems[0]
	}
	at := slices.IndexFunc(live, func(o *object) bool { return o.kind == e.s.Spec.Kind && o.name == e.s.Deployment })
	if at < 0 {
		return fmt.Errorf("no %s of this name is in %s: apply it first, and read it from the cluster", e.s.Spec.Kind,
			files(owners))
	}
	uid := text(live[at].value, "metadata", "uid")
	if uid == "" {
		return fmt.Errorf("%s in %s has no uid: read it from the cluster", live[at], files(owners))
	}
	owner := map[string]any{"apiVersion": v1alpha1.TemporalAPIVersion, "kind": e.s.Spec.Kind,
		"name": e.s.Deployment.Name, "uid": uid, "controller": true, "blockOwnerDeletion": true}
	for _, v := range e.s.Record.Versions() {
		if len(v.Pools) > 0 {
			return fmt.Errorf("version %s has pools, which the controller does not have: wait until it is gone",
				v.BuildID)
		}
		file := layout.VersionFile(v.BuildID, layout.Deployment)
		object, err := manifestOf(e.s.Record.Files[file].Data)
		if err != nil {
			return fmt.Errorf("%s: %w", path.Join(e.s.Record.Dir, file), err)
		}
		e.handBack(object, owner)
		if err := e.add("Deployment", v.Deployment, object); err != nil {
			return err
		}
	}
	return nil
}

// handBack gives a Deployment the owner, and the annotations that the controller gives it: those of its pods.
func (e *exporter) handBack(object, owner map[string]any) {
	meta, _ := object["metadata"].(map[string]any)
	meta["ownerReferences"] = []any{owner}
	delete(meta, "annotations")
	pods, _ := at(object, "spec", "template", "metadata", "annotations").(map[string]any)
	own := maps.Clone(pods)
	delete(own, rollout.AnnotationConnectionHash)
	delete(own, rollout.AnnotationPodTemplateHash)
	if len(own) > 0 {
		meta["annotations"] = own
	}
}

func manifestOf(data string) (map[string]any, error) {
	raw, err := yaml.YAMLToJSON([]byte(data))
	if err != nil {
		return nil, err
	}
	value, err := v1alpha1.DecodeJSON(raw)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if _, meta := object["metadata"].(map[string]any); !ok || !meta {
		return nil, fmt.Errorf("not a Deployment: %q", cut(bytes.TrimSpace([]byte(data))))
	}
	return object, nil
}

func cut(b []byte) string { return string(b[:min(len(b), 40)]) }

// Objects are the objects of all exports, sorted by what has to be there first, each one once: several worker
// deployments may name one connection.
func Objects(all []Export) []rollout.TextFile {
	var out []rollout.TextFile
	for _, e := range all {
		out = append(out, e.Objects...)
	}
	rank := func(f rollout.TextFile) int {
		for i, kind := range []string{"connection", "temporalconnection", "clusterconnection", "workerdeployment",
			"temporalworkerdeployment", "workerresourcetemplate"} {
			if strings.HasPrefix(path.Base(f.Path), kind+"-") {
				return i
			}
		}
		return math.MaxInt
	}
	slices.SortStableFunc(out, func(a, b rollout.TextFile) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Path, b.Path))
	})
	return slices.CompactFunc(out, func(a, b rollout.TextFile) bool { return a.Path == b.Path })
}
