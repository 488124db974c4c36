package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/policy/parse"
)

// digest names policies and data by what they mean: modules as parsed, whatever their order, paths, formatting and
// comments, and the merged data. A module that does not parse counts as it is written.
func digest(parsed []*ast.Module, broken []parse.Module, data map[string]any) (string, error) {
	var parts []string
	for _, m := range parsed {
		part, ok := librarySums()[m]
		if !ok {
			var err error
			if part, err = moduleSum(m); err != nil {
				return "", err
			}
		}
		parts = append(parts, part)
	}
	for _, m := range broken {
		parts = append(parts, sum([]byte(m.Source)))
	}
	slices.Sort(parts)
	b, err := json.Marshal(map[string]any{"modules": parts, "data": data})
	if err != nil {
		return "", fmt.Errorf("encode policy data: %w", err)
	}
	return "sha256:" + sum(b), nil
}

// librarySums holds the sums of the default library's modules.
var librarySums = sync.OnceValue(func() map[*ast.Module]string {
	out := map[*ast.Module]string{}
	for _, m := range parse.Library() {
		s, err := moduleSum(m)
		if err != nil {
			panic(err) // the files are embedded
		}
		out[m] = s
	}
	return out
})

// moduleSum is the sum of a module as parsed, without comments.
func moduleSum(m *ast.Module) (string, error) {
	plain := m.Copy()
	plain.Comments, plain.Annotations = nil, nil
	b, err := json.Marshal(plain)
	if err != nil {
		return "", fmt.Errorf("encode module %s: %w", m.Package.Path, err)
	}
	return sum(b), nil
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
