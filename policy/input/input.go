package input

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// SpecKeys are what rampart.spec may see: the subject, and what there is only where a change is judged.
func SpecKeys() []string { return append(SubjectKeys(), References) }

// SubjectKeys are what rampart.spec always sees.
func SubjectKeys() []string {
	return []string{"now", "environment", "deployment", "connection", "git", "waivers"}
}

// Field is one of an object's.
type Field struct {
	Key   string
	Value ast.Value
}

// Object is an object of fields.
func Object(lists ...[]Field) ast.Value {
	o := newObject()
	for _, list := range lists {
		for _, f := range list {
			o.put(f.Key, f.Value)
		}
	}
	return o.value()
}

// Subject is what rampart.spec sees. It fails on what cannot be written as JSON.
func Subject(s *rollout.Snapshot) ([]Field, error) {
	deployment, err := deploymentOf(s)
	if err != nil {
		return nil, err
	}
	waivers, err := waiversOf(s.Waivers)
	if err != nil {
		return nil, err
	}
	subject := []Field{
		{"now", ast.String(Instant(s.Now))}, {"environment", environmentOf(s.Environment)}, {"deployment", deployment},
		{"connection", connectionOf(s)}, {"git", gitOf(s.Git)}, {"waivers", waivers},
	}
	if len(s.References) > 0 {
		subject = append(subject, Field{References, referencesOf(s.References)})
	}
	return subject, nil
}

func waiversOf(waivers []v1alpha1.Waiver) (ast.Value, error) {
	if len(waivers) == 0 {
		return ast.NewArray(), nil
	}
	v, err := plain(waivers)
	if err != nil {
		return nil, fmt.Errorf("encode waivers: %w", err)
	}
	return v, nil
}

// World is what only rules about actions see, but for the action. It fails on facts that are no JSON.
func World(s *rollout.Snapshot, p *rollout.Proposal) ([]Field, error) {
	facts, err := factsOf(s)
	if err != nil {
		return nil, err
	}
	world := []Field{
		{"routing", routingOf(s, &s.Observation)}, {"versions", versionsOf(s, p, &s.Observation)},
		{"record", recordOf(s)},
		{"facts", facts}, {"canary", canaryOf(s, p)}, {"gate", gateOf(s)}, {"plan", planOf(p)},
		{"limits", limitsOf(s.Limits)},
	}
	if s.Cluster != nil {
		world = append(world, Field{rollout.PartCluster, clusterOf(s.Cluster)})
	}
	if beside := startingBeside(s, p); beside != nil {
		world = append(world, Field{"rollouts", beside})
	}
	if s.FirstRead != nil {
		first := newObject()
		first.put("routing", routingOf(s, s.FirstRead))
		first.put("versions", versionsOf(s, p, s.FirstRead))
		world = append(world, Field{"firstRead", first.value()})
	}
	return world, nil
}

func environmentOf(e v1alpha1.Environment) ast.Value {
	o := newObject()
	o.text("name", e.Name)
	o.text("namespace", e.Namespace)
	o.text("cd", string(e.CD.Tool))
	o.text("managerIdentity", e.ManagerIdentity)
	o.text("workerEnv", string(e.WorkerEnv))
	o.text("status", string(e.Status))
	approval := newObject()
	approval.text("mode", string(e.Approval.Mode))
	approval.text("scope", string(e.Approval.Scope))
	o.put("approval", approval.value())
	output := newObject()
	output.text("path", e.Output.Path)
	output.text("branch", e.Output.Branch)
	o.put("output", output.value())
	return o.value()
}

// startingBeside are the rollouts of the environment's other worker deployments, where the proposal begins one. Else
// nothing asks for them, and they would only fill the log of decisions.
func startingBeside(s *rollout.Snapshot, p *rollout.Proposal) ast.Value {
	if !slices.ContainsFunc(p.Actions, s.Starts) {
		return nil
	}
	var names []string
	for _, r := range s.Rollouts[:min(len(s.Rollouts), namedRollouts)] {
		names = append(names, r.Deployment.String())
	}
	o := newObject()
	o.integer("count", int64(len(s.Rollouts)))
	o.put("names", texts(names))
	return o.value()
}

// namedRollouts is how many rollouts beside are named.
const namedRollouts = 10

func deploymentOf(s *rollout.Snapshot) (ast.Value, error) {
	o := newObject()
	o.text("namespace", s.Deployment.Namespace)
	o.text("name", s.Deployment.Name)
	o.text("path", s.SpecPath)
	if s.Spec == nil {
		return o.value(), nil
	}
	o.text("kind", s.Spec.Kind)
	m := newObject()
	m.text("name", s.Spec.Metadata.Name)
	m.text("namespace", s.Spec.Metadata.Namespace)
	m.put("labels", dictionary(s.Spec.Metadata.Labels))
	m.put("annotations", dictionary(s.Spec.Metadata.Annotations))
	o.put("metadata", m.value())
	tree, err := s.Spec.Spec.Tree()
	if err != nil {
		return nil, fmt.Errorf("encode spec: %w", err)
	}
	spec, err := termsOf(tree)
	if err != nil {
		return nil, fmt.Errorf("encode spec: %w", err)
	}
	o.put("spec", spec)
	return o.value(), nil
}

// connectionOf is where the versions are, and where the spec leads. What Secrets hold is in neither.
func connectionOf(s *rollout.Snapshot) ast.Value {
	one := func(ref v1alpha1.ConnectionRef, c v1alpha1.ConnectionSpec) ast.Value {
		o := newObject()
		o.text("kind", string(cmp.Or(ref.Kind, v1alpha1.KindConnection)))
		o.text("name", ref.Name)
		o.text("hostPort", c.HostPort)
		if c.TLS != nil {
			o.text("serverName", c.TLS.ServerName)
		}
		o.text("auth", string(c.Auth()))
		switch c.Auth() {
		case v1alpha1.AuthMutualTLS:
			o.text("secret", c.MutualTLSSecretRef.Name)
		case v1alpha1.AuthAPIKey:
			o.text("secret", c.APIKeySecretRef.Name)
		}
		return o.value()
	}
	o := newObject()
	if r := s.Record.Routing; r != nil && r.Spec.Connection != nil {
		o.put("before", one(r.Spec.Connection.Ref(), r.Spec.Connection.Spec))
	}
	if c := s.Connection; c != nil {
		o.put("after", one(c.Ref(), c.Spec))
	}
	return o.value()
}

func gitOf(g rollout.GitContext) ast.Value {
	o := newObject()
	o.text("branch", g.Branch)
	o.text("commit", g.Commit)
	o.text("author", g.Author)
	o.time("when", g.When)
	o.text("message", g.Message)
	o.answer("signed", g.Signed)
	o.text("signer", g.Signer)
	o.text("reverts", g.Reverts)
	o.texts("paths", g.Paths)
	return o.value()
}

// Action is what policies see of an action.
func Action(a *rollout.Action) ast.Value {
	o := newObject()
	o.text("id", a.ID)
	o.text("kind", string(a.Kind))
	o.put("buildID", ast.String(a.BuildID))
	o.number("from", a.From)
	o.number("to", a.To)
	o.count("step", a.Step)
	o.count("steps", a.Steps)
	o.text("row", a.Row)
	o.text("reason", a.Reason)
	o.text("cause", string(a.Cause))
	o.text("bar", a.Bar)
	o.text("update", string(a.Update))
	if a.Replicas != nil {
		o.integer("replicas", int64(*a.Replicas))
	}
	o.texts("queues", a.Queues)
	if len(a.Resources) > 0 {
		o.put("resources", list(a.Resources, func(o *object, w rollout.ResourceWrite) {
			o.text("template", w.Template)
			o.flag("removes", w.Removes())
			o.flag("scales", w.Scales)
			if says, err := valueOfJSON(w.Object); err == nil && !w.Removes() {
				o.put("object", says)
			}
		}))
	}
	o.flag("raises", a.IsRaise())
	o.flag("lowers", a.Lowers())
	o.flag("removes", a.Kind.Removes())
	o.flag("approved", a.Approved)
	if g := a.Gate; g != nil {
		gate := newObject() // without its input, which may come from a Secret
		gate.text("point", g.Point)
		gate.count("attempt", g.Attempt)
		gate.text("workflowType", g.WorkflowType)
		gate.duration("timeout", g.Timeout)
		gate.text("onFailure", string(g.OnFailure))
		o.put("gate", gate.value())
	}
	if d := a.Drift; d != nil {
		drift := newObject()
		drift.text("kind", string(d.Kind))
		drift.text("direction", string(d.Direction))
		drift.text("path", d.Path)
		drift.text("recorded", d.Recorded)
		drift.text("actual", d.Actual)
		o.put("drift", drift.value())
	}
	if e := a.Evacuation; e != nil {
		o.put("evacuation", evacuationOf(e))
	}
	return o.value()
}

// evacuationOf is a stage of freeing a version of the workflows that stay on it. How old they are is not known; since
// is when their version lost its traffic.
func evacuationOf(e *rollout.Evacuation) ast.Value {
	o := newObject()
	o.text("stage", string(e.Stage))
	o.count("attempt", e.Attempt)
	o.time("since", e.Since)
	o.duration("after", e.After)
	o.text("target", e.Target)
	o.text("signal", e.Signal)
	o.text("jobID", e.JobID)
	o.integer("count", e.Open)
	return o.value()
}

func factsOf(s *rollout.Snapshot) (ast.Value, error) {
	o := newObject()
	for _, name := range slices.Sorted(maps.Keys(s.Facts)) {
		f := s.Facts[name]
		one := newObject()
		if len(f.Value) > 0 {
			v, err := valueOf(f.Value)
			if err != nil {
				return nil, fmt.Errorf("decode fact %q: %w", name, err)
			}
			one.put("value", measured(v))
		}
		one.time("observedAt", f.ObservedAt)
		one.duration("maxAge", f.MaxAge)
		one.text("source", f.Source)
		one.text("error", f.Error)
		one.flag("fresh", f.Fresh(s.Now))
		o.put(name, one.value())
	}
	return o.value(), nil
}

// valueOf reads a fact's JSON, which mostly is one number.
func valueOf(text []byte) (ast.Value, error) {
	if json.Valid(text) {
		if _, err := strconv.ParseFloat(string(text), 64); err == nil {
			return ast.Number(text), nil
		}
	}
	return valueOfJSON(text)
}

// measured rounds a fact that is one number.
func measured(v ast.Value) ast.Value {
	n, ok := v.(ast.Number)
	if !ok {
		return v
	}
	f, ok := n.Float64()
	if !ok || f == math.Trunc(f) {
		return v
	}
	return ast.Number(json.Number(strconv.FormatFloat(significant(f, digitsOfFact), 'f', -1, 64)))
}

const digitsOfFact = 6

func planOf(p *rollout.Proposal) ast.Value {
	o := newObject()
	o.text("row", p.Row)
	o.text("reason", string(p.State.Reason))
	o.text("message", p.State.Message)
	if t := p.Target; t != nil {
		target := newObject()
		target.text("buildID", t.BuildID)
		target.text("buildIDFrom", string(t.BuildIDFrom))
		target.text("templateHash", abbreviated(t.TemplateHash))
		target.text("deployment", t.Deployment)
		target.count("attempt", t.Attempt)
		target.time("since", t.Since)
		target.text("status", string(t.Status))
		o.put("target", target.value())
	}
	o.put("actions", list(p.Actions, func(o *object, a rollout.Action) {
		o.text("id", a.ID)
		o.text("kind", string(a.Kind))
		o.put("buildID", ast.String(a.BuildID))
	}))
	return o.value()
}

func limitsOf(l rollout.Limits) ast.Value {
	o := newObject()
	o.integer("maxVersions", int64(l.MaxVersions))
	o.duration("factMaxAge", l.FactMaxAge)
	o.duration("pollerMaxAge", l.PollerMaxAge)
	return o.value()
}

func gateOf(s *rollout.Snapshot) ast.Value {
	o := newObject()
	o.put("runs", list(s.Observation.Gates, func(o *object, g rollout.GateRun) {
		o.text("workflowID", g.WorkflowID)
		o.text("taskQueue", g.TaskQueue)
		o.text("state", string(cmp.Or(g.State, rollout.GateUnread)))
		o.text("reason", g.Reason)
		o.time("startedAt", g.StartedAt)
		o.time("closedAt", g.ClosedAt)
	}))
	return o.value()
}
