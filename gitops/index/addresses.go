package index

import (
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// AddressRule lets the connections of environments lead to addresses, host:port. Both are globs.
type AddressRule struct{ Environments, Addresses string }

// ParseAddressRule reads ENVIRONMENT=HOST:PORT, such as prod=temporal.example.com:7233, dev*=*.dev.example.com:*.
func ParseAddressRule(text string) (AddressRule, error) {
	environments, addresses, ok := strings.Cut(text, "=")
	if !ok || environments == "" || addresses == "" || !doublestar.ValidatePattern(environments) ||
		!doublestar.ValidatePattern(addresses) {
		return AddressRule{}, fmt.Errorf("%q is not of the form ENVIRONMENT=HOST:PORT, such as "+
			"prod=temporal.example.com:7233 or dev*=*.dev.example.com:*", text)
	}
	if !strings.ContainsAny(addresses, ":*") {
		return AddressRule{}, fmt.Errorf("%q has no port, so that no address is like it: %s:7233 for one port, "+
			"%[2]s:* for any", text, text)
	}
	return AddressRule{environments, strings.ToLower(addresses)}, nil
}

// AllowAddresses says where the connections of environments may lead. Without a rule they may lead anywhere. With
// one, an address that no rule allows is refused: also in environments that the rules do not foresee, since a
// repository names its own environments.
func AllowAddresses(rules []AddressRule) Option { return func(o *options) { o.addresses = rules } }

// foreignAddress says that an environment's connection may not lead to an address; "" if it may.
func (e *environment) foreignAddress(address string) string {
	for _, r := range e.options.addresses {
		env, err := doublestar.Match(r.Environments, e.world.Environment.Name)
		to, other := doublestar.Match(r.Addresses, strings.ToLower(address))
		if env && to && err == nil && other == nil {
			return ""
		}
	}
	if len(e.options.addresses) == 0 {
		return ""
	}
	return fmt.Sprintf("the bot's configuration (--allowed-temporal-addresses) does not let a connection of "+
		"environment %s lead to %q",
		e.world.Environment.Name, address)
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
