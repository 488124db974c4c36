package temporal

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
)

// changes reports whether a method of the workflow service changes anything. A method that is not known as a read
// counts as a change, so that methods added to the API are not overlooked.
func changes(method string) bool {
	return !slices.ContainsFunc([]string{"Count", "Describe", "Get", "List", "Query", "Scan"}, func(prefix string) bool {
		return strings.HasPrefix(method, prefix)
	})
}

// Every change of the server goes through write, at a site that Sites lists.
func TestEveryChangeIsASite(t *testing.T) {
	var mutating []string
	client := reflect.TypeFor[workflowservice.WorkflowServiceClient]()
	for i := range client.NumMethod() {
		if name := client.Method(i).Name; changes(name) {
			mutating = append(mutating, name)
		}
	}
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var declared, used []string
	var found, wrapped int
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for _, name := range n.Names {
					if strings.HasPrefix(name.Name, "Site") {
						declared = append(declared, name.Name)
					}
				}
			case *ast.SelectorExpr:
				if slices.Contains(mutating, n.Sel.Name) {
					found++
				}
			case *ast.Ident:
				if strings.HasPrefix(n.Name, "Site") && len(n.Name) > len("Sites") {
					used = append(used, n.Name)
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "write" {
					method, ok := n.Args[2].(*ast.SelectorExpr)
					require.True(t, ok && slices.Contains(mutating, method.Sel.Name), "write is for methods that change the server")
					wrapped++
				}
			}
			return true
		})
	}
	require.NotZero(t, wrapped)
	require.Equal(t, wrapped, found, "a method that changes the server is used outside of write")
	require.Len(t, Sites(), len(declared), "Sites lists every site")
	for _, site := range declared {
		count := 0
		for _, u := range used {
			if u == site {
				count++
			}
		}
		require.GreaterOrEqual(t, count, 3, "%s is declared, listed and used", site)
	}
	sorted := slices.Sorted(slices.Values(Sites()))
	require.Equal(t, len(sorted), len(slices.Compact(slices.Clone(sorted))))
}
