package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// To match a path, each combination of alternatives may be tried: thirty pairs would take a machine for an hour.
func TestPatternsAreBounded(t *testing.T) {
	problems := func(pattern string) []v1alpha1.Problem {
		_, problems := v1alpha1.Decode("rampart.yaml", []byte("apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec:\n  environments:\n"+
			"    - {name: a, specs: [\""+pattern+"\"], output: {path: deploy}}\n"))
		return problems
	}
	for _, fine := range []string{"workers/**/*.{yaml,yml}", "{a,b,c}/{d,e}/**", strings.Repeat("{a,b}", 8)} {
		require.Empty(t, problems(fine), fine)
	}
	for _, bomb := range []string{strings.Repeat("{a,a}", 30) + "b", strings.Repeat("{a,{b,{c,d}}}", 9), "{" + strings.Repeat("a,", 300) + "a}"} {
		require.Contains(t, problems(bomb)[0].String(), "more than 256 combinations of alternatives in braces")
	}
}
