package parse

import (
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// forbidden builtins, and why.
//
//   - They reach outside: http.send, net.*, opa.runtime, trace; print, whose calls OPA takes out; json.match_schema and
//     json.verify_schema, whose schemas may refer to files.
//   - They make other policies: rego.parse_module.
//   - Their answer is not the same twice: rand.intn and others that OPA marks, and certificate chains checked against
//     the system's clock and roots.
//   - They are about keys, certificates, tokens, requests to clouds and annotations, which no policy here is given:
//     io.jwt.*, crypto.x509.*, crypto.parse_private_keys, providers.*, rego.metadata.*.
//   - They can run for ever and do not look whether they were canceled.
func forbidden() []string {
	return []string{
		"http.send", "opa.runtime", "rego.parse_module", "trace", "print", "internal.print",
		"json.match_schema", "json.verify_schema",
		"crypto.parse_private_keys",
		"graph.reachable_paths", "regex.globs_match", "strings.render_template",
	}
}

// forbiddenFamilies begin the names of builtins that are forbidden.
func forbiddenFamilies() []string {
	return []string{"net.", "graphql.", "io.jwt.", "crypto.x509.", "providers.", "rego.metadata."}
}

// Capabilities are what policies may use. OPA sorts some hundred builtins to tell them, which takes as long as parsing
// a module. All callers share one value, and must not change it.
func Capabilities() *ast.Capabilities { return capabilities() }

var capabilities = sync.OnceValue(func() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	no, families := forbidden(), forbiddenFamilies()
	c.Builtins = slices.DeleteFunc(slices.Clone(c.Builtins), func(b *ast.Builtin) bool {
		return slices.Contains(no, b.Name) ||
			slices.ContainsFunc(families, func(prefix string) bool { return strings.HasPrefix(b.Name, prefix) }) ||
			b.Nondeterministic && b.Name != ast.NowNanos.Name // time.now_ns is the snapshot's Now
	})
	c.AllowNet = []string{}
	return c
})
