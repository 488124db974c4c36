package index

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// NamespaceRule lets environments name namespaces. Both are globs.
type NamespaceRule struct{ Environments, Namespaces string }

// Namespaces are what the bot's own configuration lets environments name. Without a rule everything is allowed.
// With one, a namespace that no rule allows is refused: also to environments that the rules do not foresee, since a
// repository names its own environments.
type Namespaces struct {
	// Kubernetes has the namespaces of specs and records, Temporal those of workers.
	Kubernetes, Temporal []NamespaceRule
}

// ParseNamespaceRule reads ENVIRONMENTS=NAMESPACES, such as prod=payments, dev*=team-*.
func ParseNamespaceRule(text string) (NamespaceRule, error) {
	environments, namespaces, ok := strings.Cut(text, "=")
	if !ok || environments == "" || namespaces == "" || !doublestar.ValidatePattern(environments) ||
		!doublestar.ValidatePattern(namespaces) {
		return NamespaceRule{}, fmt.Errorf("%q is not of the form ENVIRONMENT=NAMESPACE, such as prod=payments or "+
			"dev*=team-*", text)
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
	return fmt.Sprintf("the bot's configuration (--allowed-temporal-namespaces) does not let environment %s name the "+
		"Temporal namespace %q",
		e.world.Environment.Name, namespace)
}

// checkTemporal takes a spec that names a Temporal namespace that it may not for one that cannot be used.
func (e *environment) checkTemporal(s *specAt) {
	namespace := ""
	switch {
	case s.spec != nil:
		namespace = s.spec.Spec.WorkerOptions.TemporalNamespace
	case s.brief != nil:
		namespace = s.brief.TemporalNamespace
	}
	if why := e.foreignTemporal(namespace); why != "" {
		const field = "spec.workerOptions.temporalNamespace"
		e.fault(s, field, "%s", why)
		s.spec, s.brief, s.problems = nil, nil, []v1alpha1.Problem{
			{Severity: v1alpha1.Error, File: s.file.path, Line: s.line, Path: field, Message: why}}
	}
}

// restricted says whether there is anything that environments may not name.
func (o options) restricted() bool {
	return len(o.namespaces.Kubernetes) > 0 || len(o.namespaces.Temporal) > 0 || len(o.addresses) > 0
}

// foreign says why nothing of a worker deployment is the environment's; "" if it may be. Its record is the repository's
// word, too: what that names is asked about and lowered, so it is not enough to look at the spec.
func (e *environment) foreign(n rollout.Name, record *recordAt) string {
	if !allows(e.options.namespaces.Kubernetes, e.world.Environment.Name, n.Namespace) {
		return fmt.Sprintf("the bot's configuration (--allowed-namespaces) does not let environment %s name the "+
			"namespace %q",
			e.world.Environment.Name, n.Namespace)
	}
	for _, namespace := range record.temporal() {
		if why := e.foreignTemporal(namespace); why != "" {
			return why
		}
	}
	if address := record.address(); address != "" {
		return e.foreignAddress(address)
	}
	return ""
}

// withoutForeign leaves out worker deployments that are not the environment's. Nothing of them is read, asked about or
// written.
func (e *environment) withoutForeign(all []deploymentAt) []deploymentAt {
	if !e.options.restricted() {
		return all
	}
	return slices.DeleteFunc(all, func(d deploymentAt) bool {
		record := d.record
		if record == nil {
			record = &recordAt{}
		}
		why := e.foreign(d.name, record)
		if why == "" {
			return false
		}
		file, line := record.Dir, 0
		if len(d.specs) > 0 {
			file, line = d.specs[0].file.path, d.specs[0].line
		}
		e.world.Problems = append(e.world.Problems, v1alpha1.Problem{Severity: v1alpha1.Error, File: file, Line: line,
			Message: fmt.Sprintf("%s: %s: nothing of it is touched", d.name, why)})
		return true
	})
}
