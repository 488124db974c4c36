package v1alpha1

import (
	"math"
	"regexp"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The bounds of a rollout.
const (
	// MaxSteps of a progressive rollout.
	MaxSteps = 20
	// MinPause at a step.
	MinPause = time.Second
	// maxBuildID is the length of a custom build ID: it becomes a label's value.
	maxBuildID = 63
)

var (
	// buildIDPattern is what the in-cluster controller allows for a build ID that the user chooses.
	buildIDPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?$`)
	})
	metricPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,62}$`) })
)

// workerDeployment checks a spec. Temporal's limit of 480 bytes for namespace/name follows from the two labels.
func (v *validator) workerDeployment(n *node, w *WorkerDeployment) {
	metadata := v.metadata(n)
	if n.get("status") == nil { // else it is a status.yaml, with what was added there
		v.specMetadata(metadata)
	}
	v.deploymentName(v.text(metadata, "name"))
	spec := v.require(n, "spec")
	if spec == nil {
		return
	}
	v.replicas(spec.get("replicas"))
	v.podTemplate(v.require(spec, "template"))
	v.deadlines(spec, &w.Spec)
	if kind := spec.at("strategy", "type"); kind.present() && kind.str() != "Recreate" &&
		kind.str() != "RollingUpdate" {
		v.errorf(kind, "%s: want one of Recreate, RollingUpdate (how new versions get traffic is "+
			"spec.rollout.strategy)", quote(kind.str()))
	}
	v.rollout(v.require(spec, "rollout"), &w.Spec.Rollout)
	v.sunset(spec.get("sunset"), &w.Spec.Sunset)
	v.workerOptions(v.require(spec, "workerOptions"))
	v.pools(spec.get("pools"))
}

func (v *validator) deploymentName(name *node) {
	if name == nil {
		return
	}
	if strings.ContainsAny(name.str(), ".:") || strings.HasPrefix(name.str(), "__") {
		v.suggest(name, closestLabel(name.str()),
			"%s: Temporal refuses a worker deployment's name with a dot or a colon, or "+
				"with __ at its beginning", quote(name.str()))
		return
	}
	v.label(name, "a name")
}

// closestLabel replaces what a label can't have.
func closestLabel(s string) string {
	s = strings.Trim(strings.NewReplacer(".", "-", ":", "-", "_", "-").Replace(strings.ToLower(s)), "-")
	if len(validation.IsDNS1123Label(s)) > 0 {
		return ""
	}
	return s
}

func (v *validator) replicas(n *node) {
	if n.present() && strings.HasPrefix(n.text, "-") {
		v.errorf(n, "must not be negative")
	}
}

func (v *validator) deadlines(spec *node, s *WorkerDeploymentSpec) {
	ready, deadline := spec.get("minReadySeconds"), spec.get("progressDeadlineSeconds")
	if ready.present() && s.MinReadySeconds < 0 {
		v.errorf(ready, "must not be negative")
	}
	at := deadline
	if !at.present() {
		at = ready
	}
	if at.present() && !(deadline != nil && deadline.bad) && *s.ProgressDeadlineSeconds <= max(s.MinReadySeconds, 0) {
		v.errorf(at, "progressDeadlineSeconds (%d) has to be more than minReadySeconds (%d)",
			*s.ProgressDeadlineSeconds, s.MinReadySeconds)
	}
}

func (v *validator) rollout(n *node, r *RolloutStrategy) {
	if n == nil {
		return
	}
	v.require(n, "strategy")
	steps := n.get("steps")
	switch {
	case r.Strategy == Progressive && len(steps.items()) == 0 && (steps == nil || !steps.bad):
		v.errorf(n, "strategy Progressive needs steps")
	case len(steps.items()) > MaxSteps:
		v.errorf(steps, "more than %d steps", MaxSteps)
		return
	}
	last := 0.0
	for i, step := range steps.items() {
		if i < len(r.Steps) {
			last = v.step(step, &r.Steps[i], last)
		}
	}
	v.gate(n.get("gate"), r.Gate)
	v.notNegative(n.at("rollback", "window"), r.Rollback.Window)
	v.analysis(n.get("analysis"), r.Analysis)
}

// step checks one step and gives its percentage, or last if that percentage cannot be used.
func (v *validator) step(n *node, s *RolloutStep, last float64) float64 {
	if pause := v.require(n, "pauseDuration"); pause != nil && s.PauseDuration.Duration < MinPause {
		v.errorf(pause, "%s is shorter than %s", quote(pause.str()), Duration{MinPause})
	}
	v.gate(n.get("gate"), s.Gate)
	field, p := v.require(n, "rampPercentage"), s.RampPercentage
	switch {
	case field == nil:
		return last
	case p == 100:
		v.errorf(field, "100: the promotion follows the last step by itself; remove this step")
	case p <= 0 || p > 100:
		v.errorf(field, "%s is not above 0 and below 100", field.text)
	case math.Round(p*100)/100 != p:
		v.errorf(field, "%s has more than two decimals", field.text)
	case p <= last:
		v.errorf(field, "%s is not above the step before (%s)", field.text, formatFloat(last))
	default:
		return p
	}
	return last
}

func (v *validator) gate(n *node, g *Gate) {
	if !n.present() || g == nil {
		return
	}
	v.printable(v.text(n, "workflowType"))
	if timeout := n.get("timeout"); timeout.present() && g.Timeout.Duration <= 0 {
		v.errorf(timeout, "has to be above 0")
	}
	from := n.get("inputFrom")
	if input := n.get("input"); input.present() && from.present() {
		v.errorf(from, "only one of input and inputFrom may be given")
	}
	if from.present() {
		ref := v.oneOf(from, "configMapKeyRef", "secretKeyRef")
		v.keySelector(ref)
	}
}

// keySelector checks a reference to one key of a ConfigMap or Secret.
func (v *validator) keySelector(n *node) {
	if !n.present() {
		return
	}
	if name := v.text(n, "name"); name != nil {
		v.subdomain(name, "a name")
	}
	if key := v.text(n, "key"); key != nil {
		v.named(key, validation.IsConfigMapKey(key.str()), "a key: letters, digits and . _ -")
	}
}

func (v *validator) analysis(n *node, a *Analysis) {
	if !n.present() || a == nil {
		return
	}
	v.positive(n.get("window"), a.Window)
	v.positive(n.get("maxWait"), a.MaxWait)
	v.notNegative(n.get("bake"), a.Bake)
	if f := n.get("minSamples"); f.present() && a.MinSamples < 1 {
		v.errorf(f, "has to be at least 1")
	}
	if f := n.get("alpha"); f.present() && (a.Alpha <= 0 || a.Alpha > 0.5) {
		v.errorf(f, "%s is not above 0 and at most 0.5", f.text)
	}
	if f := n.get("tolerance"); f.present() && (a.Tolerance < 0 || a.Tolerance > 10) {
		v.errorf(f, "%s is not between 0 and 10", f.text)
	}
	if f := n.get("maxFailureRate"); f.present() && (a.MaxFailureRate <= 0 || a.MaxFailureRate >= 1) {
		v.errorf(f, "%s is not above 0 and below 1", f.text)
	}
	if f := n.get("failures"); f.present() && len(f.items()) == 0 {
		v.errorf(f, "has to name at least one end of a workflow that counts as a failure, such as Failed")
	}
	metrics := n.get("metrics")
	if len(metrics.items()) > MaxMetrics {
		v.errorf(metrics, "more than %d metrics", MaxMetrics)
		return
	}
	v.unique(metrics.items(), "name", "metric")
	for i, m := range metrics.items() {
		if name := v.text(m, "name"); name != nil {
			v.matches(name, metricPattern(), "a metric's name: letters, digits and _, not a digit first, at most 63")
		}
		if p := v.require(m, "prometheus"); p != nil {
			v.query(v.text(p, "query"))
		}
		if i < len(a.Metrics) {
			v.positive(m.get("maxAge"), a.Metrics[i].MaxAge)
		}
	}
}

func (v *validator) query(n *node) {
	if n == nil {
		return
	}
	if _, err := ParseQuery(n.str()); err != nil {
		v.errorf(n, "%s", err)
	}
}

func (v *validator) positive(n *node, d Duration) {
	if n.present() && d.Duration <= 0 {
		v.errorf(n, "%s is not above 0", quote(n.str()))
	}
}

func (v *validator) notNegative(n *node, d Duration) {
	if n.present() && d.Duration < 0 {
		v.errorf(n, "%s is negative", quote(n.str()))
	}
}

func (v *validator) sunset(n *node, s *SunsetStrategy) {
	if !n.present() {
		return
	}
	down, del := n.get("scaledownDelay"), n.get("deleteDelay")
	v.notNegative(down, s.ScaledownDelay)
	v.notNegative(del, s.DeleteDelay)
	if (down.present() || del.present()) && 0 <= s.DeleteDelay.Duration &&
		s.DeleteDelay.Duration < s.ScaledownDelay.Duration {
		at := del
		if !at.present() {
			at = down
		}
		v.warnf(at,
			"both delays count from the moment a version is drained, and it is scaled down before it is deleted: "+
				"deleteDelay (%s) shorter than scaledownDelay (%s) has no effect", s.DeleteDelay, s.ScaledownDelay)
	}
	v.evacuate(n.get("evacuate"), s.Evacuate)
}

func (v *validator) evacuate(n *node, e *Evacuation) {
	if !n.present() || e == nil {
		return
	}
	if signal := n.get("continueAsNewSignal"); signal.present() && e.ContinueAsNewSignal != nil {
		v.printable(v.text(signal, "name"))
		v.require(signal, "after")
		v.notNegative(signal.get("after"), e.ContinueAsNewSignal.After)
	}
	if move := n.get("moveTo"); move.present() && e.MoveTo != nil {
		v.matches(v.text(move, "target"), buildIDPattern(), "Current or a build ID")
		v.require(move, "after")
		v.notNegative(move.get("after"), e.MoveTo.After)
	}
	// 0s is the same as not given.
	v.notNegative(n.get("cancelAfter"), e.CancelAfter)
	terminate := n.get("terminateAfter")
	v.notNegative(terminate, e.TerminateAfter)
	if terminate.present() && e.TerminateAfter.Duration > 0 && e.TerminateAfter.Duration < e.CancelAfter.Duration {
		v.errorf(terminate, "%s is shorter than cancelAfter (%s)", quote(terminate.str()), e.CancelAfter)
	}
}

func (v *validator) workerOptions(n *node) {
	if n == nil {
		return
	}
	v.reference(v.require(n, "connectionRef"), "a connection's name")
	if namespace := v.text(n, "temporalNamespace"); namespace != nil {
		v.printable(namespace)
		if strings.Contains(namespace.str(), " ") {
			v.errorf(namespace, "%s is not a Temporal namespace: it has a space", quote(namespace.str()))
		}
	}
	id := n.get("unsafeCustomBuildID")
	if !id.present() || id.str() == "" {
		return
	}
	if len(id.str()) > maxBuildID {
		v.errorf(id, "a build ID has at most %d characters, this one has %d", maxBuildID, len(id.str()))
		return
	}
	v.matches(id, buildIDPattern(), "a build ID: letters, digits and inner . _ -")
}

// reference checks an object with just a name in it, which has no dots.
func (v *validator) reference(n *node, what string) {
	if n == nil {
		return
	}
	name := v.text(n, "name")
	if name == nil {
		return
	}
	if strings.Contains(name.str(), ".") {
		v.errorf(name, "%s is not %s: a name without dots is needed here", quote(name.str()), what)
		return
	}
	v.subdomain(name, what)
}

// taken says whether a version's folder has another file of that name already.
func (v *validator) taken(name *node) {
	if name.str() == "deployment" || name.str() == "kustomization" {
		v.errorf(name, "%s is taken by another file beside it: choose another name", quote(name.str()))
	}
}

func (v *validator) pools(n *node) {
	v.unique(n.items(), "name", "pool")
	for _, pool := range n.items() {
		if name := v.text(pool, "name"); name != nil && v.label(name, "a pool's name") {
			v.taken(name)
		}
		v.replicas(pool.get("replicas"))
		seen := map[string]bool{}
		for _, q := range pool.get("taskQueues").items() {
			v.printable(q)
			if seen[q.str()] {
				v.errorf(q, "%s is there already", quote(q.str()))
			}
			seen[q.str()] = true
		}
		v.podTemplate(v.require(pool, "template"))
	}
}
