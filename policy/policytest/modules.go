// Package policytest writes policies for tests.
package policytest

import (
	"fmt"

	"github.com/rampart-gitops/rampart/policy/parse"
)

// Modules are sources as files policies/p1.rego and so on.
func Modules(sources ...string) []parse.Module {
	var out []parse.Module
	for i, s := range sources {
		out = append(out, parse.Module{Path: fmt.Sprintf("policies/p%d.rego", i+1), Source: s})
	}
	return out
}

// Rules is a body in the package that is asked about rollouts.
func Rules(body string) string { return "package rampart.rollout\n\n" + body }

// Deny is a rule that fires where a body holds.
func Deny(body string) string {
	return Rules("deny contains {\"rule\": \"acme.x\", \"msg\": \"m\"} if {\n" + body + "\n}\n")
}
