package index

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Rule lets environments name something. Both are globs.
type Rule struct{ Environments, Allows string }

// Allowed is what the bot's own configuration lets environments name. Without a rule everything is allowed. With one,
// what no rule allows is refused: also to environments that the rules do not foresee, since a repository names its own
// environments.
type Allowed struct {
	// Namespaces are those of specs and records, TemporalNamespaces those of workers.
	Namespaces, TemporalNamespaces []Rule
	// TemporalAddresses are where connections may lead, host:port.
	TemporalAddresses []Rule
}

// Allow says what environments may name.
func Allow(a Allowed) Option { return func(o *options) { o.allowed = a } }

// ParseNamespaceRule reads ENVIRONMENT=NAMESPACE, such as prod=payments, dev*=team-*.
func ParseNamespaceRule(text string) (Rule, error) {
	return parseRule(text, "ENVIRONMENT=NAMESPACE, such as prod=payments or dev*=team-*")
}

// ParseAddressRule reads ENVIRONMENT=HOST:PORT, such as prod=temporal.example.com:7233, dev*=*.dev.example.com:*.
func ParseAddressRule(text string) (Rule, error) {
	r, err := parseRule(text, "ENVIRONMENT=HOST:PORT, such as prod=temporal.example.com:7233 or "+
		"dev*=*.dev.example.com:*")
	if err == nil && !strings.ContainsAny(r.Allows, ":*") {
		return Rule{}, fmt.Errorf("%q has no port, so that no address is like it: %[1]s:7233 for one port, "+
			"%[1]s:* for any", text)
	}
	r.Allows = strings.ToLower(r.Allows)
	return r, err
}

func parseRule(text, form string) (Rule, error) {
	environments, allows, ok := strings.Cut(text, "=")
	if !ok || environments == "" || allows == "" || !doublestar.ValidatePattern(environments) ||
		!doublestar.ValidatePattern(allows) {
		return Rule{}, fmt.Errorf("%q is not of the form %s", text, form)
	}
	return Rule{environments, allows}, nil
}

func allows(rules []Rule, environment, name string) bool {
	for _, r := range rules {
		env, err := doublestar.Match(r.Environments, environment)
		named, other := doublestar.Match(r.Allows, name)
		if env && named && err == nil && other == nil {
			return true
		}
	}
	return len(rules) == 0
}

// foreignAddress says that an environment's connection may not lead to an address; "" if it may.
func (e *environment) foreignAddress(address string) string {
	if allows(e.options.allowed.TemporalAddresses, e.world.Environment.Name, strings.ToLower(address)) {
		return ""
	}
	return fmt.Sprintf("the bot's configuration (--allowed-temporal-addresses) does not let a connection of "+
		"environment %s lead to %q", e.world.Environment.Name, address)
}

// foreignTemporal says that an environment may not name a Temporal namespace; "" if it may.
func (e *environment) foreignTemporal(namespace string) string {
	if namespace == "" || allows(e.options.allowed.TemporalNamespaces, e.world.Environment.Name, namespace) {
		return ""
	}
	return fmt.Sprintf("the bot's configuration (--allowed-temporal-namespaces) does not let environment %s name the "+
		"Temporal namespace %q", e.world.Environment.Name, namespace)
}

// refuse reports a connection that leads where it may not. Nothing that names it can be used.
func (e *environment) refuse(name rollout.Name, f *found, line int, why string) {
	const field = "spec.hostPort"
	p := v1alpha1.Problem{Severity: v1alpha1.Error, File: f.path, Line: line, Path: field, Message: why}
	e.world.Problems = append(e.world.Problems, p)
	if e.refused == nil {
		e.refused = map[rollout.Name]v1alpha1.Problem{}
	}
	e.refused[name] = p
}

// checkConnection takes a spec for one that cannot be used where its connection leads where it may not.
func (e *environment) checkConnection(s *rollout.Snapshot) {
	if s.Spec == nil || s.Connection != nil {
		return
	}
	ref := s.Spec.Spec.WorkerOptions.ConnectionRef
	if p, ok := e.refused[connectionKey(ref, s.Deployment.Namespace)]; ok {
		s.Problems = append(s.Problems, rollout.Problem{Reason: rollout.InvalidSpec,
			Message: fmt.Sprintf("%s: %s", ref.In(s.Deployment.Namespace), p)})
	}
}

// checkTemporal takes a spec that names a Temporal namespace that it may not for one that cannot be used.
func (e *environment) checkTemporal(s *specAt) {
	namespace := ""
	switch {
	case s.spec != nil:
		namespace = s.spec.Spec.WorkerOptions.TemporalNamespace
	case s.entry != nil:
		namespace = s.entry.TemporalNamespace
	}
	if why := e.foreignTemporal(namespace); why != "" {
		e.fault(s, "spec.workerOptions.temporalNamespace", "%s", why)
		s.spec, s.entry = nil, nil
		s.problems = slices.Clone(e.world.Problems[len(e.world.Problems)-1:])
	}
}

// foreign says why nothing of a worker deployment is the environment's; "" if it may be. Its record is the repository's
// word, too: what that names is asked about and lowered, so it is not enough to look at the spec.
func (e *environment) foreign(n rollout.Name, record *recordAt) string {
	if !allows(e.options.allowed.Namespaces, e.world.Environment.Name, n.Namespace) {
		return fmt.Sprintf("the bot's configuration (--allowed-namespaces) does not let environment %s name the "+
			"namespace %q", e.world.Environment.Name, n.Namespace)
	}
	for _, namespace := range record.says.Temporal {
		if why := e.foreignTemporal(namespace); why != "" {
			return why
		}
	}
	if record.says.Address != "" {
		return e.foreignAddress(record.says.Address)
	}
	return ""
}

// withoutForeign leaves out worker deployments that are not the environment's. Nothing of them is read, asked about or
// written.
func (e *environment) withoutForeign(all []deploymentAt) []deploymentAt {
	if a := e.options.allowed; len(a.Namespaces)+len(a.TemporalNamespaces)+len(a.TemporalAddresses) == 0 {
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
