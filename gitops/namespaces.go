package gitops

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// NamespaceRule lets environments name namespaces. Both are globs.
type NamespaceRule struct{ Environments, Namespaces string }

// Namespaces are what the bot's own configuration lets environments name. Without a rule everything is allowed; with one, what no rule
// allows is not: also to environments that nobody thought of, since a repository names its own.
type Namespaces struct {
	// Kubernetes has the namespaces of specs and records, Temporal those of workers.
	Kubernetes, Temporal []NamespaceRule
}

// ParseNamespaceRule reads ENVIRONMENTS=NAMESPACES, such as prod=payments, dev*=team-*.
func ParseNamespaceRule(text string) (NamespaceRule, error) {
	environments, namespaces, ok := strings.Cut(text, "=")
	if !ok || environments == "" || namespaces == "" || !doublestar.ValidatePattern(environments) || !doublestar.ValidatePattern(namespaces) {
		return NamespaceRule{}, fmt.Errorf("%q is not of the form ENVIRONMENT=NAMESPACE, such as prod=payments or dev*=team-*", text)
	}
	return NamespaceRule{environments, namespaces}, nil
}

// AllowNamespaces says which namespaces environments may name.
func AllowNamespaces(n Namespaces) Option { return func(o *options) { o.namespaces = n } }

func allows(rules []NamespaceRule, environment, namespace string) bool {
	for _, r := range rules {
		env, err := doublestar.Match(r.Environments, environment)
		ns, other := doublestar.Match(r.Namespaces, namespace)
		if env && ns && err == nil && other == nil {
			return true
		}
	}
	return len(rules) == 0
}

// foreignTemporal says that an environment may not name a Temporal namespace; "" if it may.
func (e *environment) foreignTemporal(namespace string) string {
	if namespace == "" || allows(e.options.namespaces.Temporal, e.world.Environment.Name, namespace) {
		return ""
	}
	return fmt.Sprintf("the bot's configuration (--allowed-temporal-namespaces) does not let environment %s name the Temporal namespace %q",
		e.world.Environment.Name, namespace)
}

// checkTemporal takes a spec that names a Temporal namespace that it may not for one that cannot be used.
func (e *environment) checkTemporal(s *specAt) {
	if s.spec == nil {
		return
	}
	if why := e.foreignTemporal(s.spec.Spec.WorkerOptions.TemporalNamespace); why != "" {
		const field = "spec.workerOptions.temporalNamespace"
		e.fault(*s, field, "%s", why)
		s.spec, s.problems = nil, []v1alpha1.Problem{{Severity: v1alpha1.Error, File: s.file.path, Line: s.line, Path: field, Message: why}}
	}
}

// foreign says why nothing of a worker deployment is the environment's; "" if it may be. Its record is the repository's word, too: what
// that names is asked about and lowered, so it is not enough to look at the spec.
func (e *environment) foreign(n rollout.Name, record rollout.Record) string {
	if !allows(e.options.namespaces.Kubernetes, e.world.Environment.Name, n.Namespace) {
		return fmt.Sprintf("the bot's configuration (--allowed-namespaces) does not let environment %s name the namespace %q",
			e.world.Environment.Name, n.Namespace)
	}
	recorded, last := "", ""
	if record.Routing != nil {
		recorded = e.foreignTemporal(record.Routing.Spec.TemporalNamespace)
	}
	if record.Status != nil {
		last = e.foreignTemporal(record.Status.Spec.WorkerOptions.TemporalNamespace)
	}
	return cmp.Or(recorded, last)
}

// withoutForeign leaves out worker deployments that are not the environment's. Nothing of them is read, asked about or written.
func (e *environment) withoutForeign(names map[rollout.Name]bool, records map[rollout.Name]rollout.Record) {
	for _, n := range sortedNames(names) {
		why := e.foreign(n, records[n])
		if why == "" {
			continue
		}
		file, line := records[n].Dir, 0
		if specs := e.specs[n]; len(specs) > 0 {
			file, line = specs[0].file.path, specs[0].line
		}
		e.world.Problems = append(e.world.Problems, v1alpha1.Problem{Severity: v1alpha1.Error, File: file, Line: line,
			Message: fmt.Sprintf("%s: %s: nothing of it is touched", n, why)})
		delete(names, n)
		delete(e.specs, n)
	}
}
