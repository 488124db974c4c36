package v1alpha1

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClosestNameIsSuggested(t *testing.T) {
	known := []string{"rampPercentage", "pauseDuration", "gate", "spec", "ArgoCD", "WithLegacyNames"}
	for name, want := range map[string]string{
		"rampPercent": "rampPercentage", "RampPercentage": "rampPercentage", "pasueDuration": "pauseDuration", "gtae": "gate", "gates": "gate",
		"spc": "spec", "x": "", "": "", "unrelated": "", "argo": "ArgoCD", "legacy": "WithLegacyNames", strings.Repeat("spec", 100): "",
	} {
		require.Equal(t, want, Closest(name, known), name)
	}
}

func TestDistanceBetweenNamesIsBounded(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}, {"abcdef", "", 6}} {
		require.Equal(t, test.want, distance(test.a, test.b, 100), "%s %s", test.a, test.b)
		require.Equal(t, test.want, distance(test.b, test.a, 100), "%s %s", test.b, test.a)
		require.Equal(t, min(2, test.want), distance(test.a, test.b, 2), "%s %s", test.a, test.b)
	}
}

// The shapes of all that is decoded have sorted names, for the walk over them. Each string type of ours has its values.
func TestShapesAreSortedAndListAllValues(t *testing.T) {
	seen := map[*shape]bool{}
	var walk func(*shape)
	walk = func(s *shape) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		require.NotZero(t, s.form, s.typ)
		require.True(t, slices.IsSorted(s.names()), s.typ)
		require.Equal(t, len(s.names()), len(slices.Compact(s.names())), s.typ)
		if s.typ.Kind() == reflect.String && strings.HasSuffix(s.typ.PkgPath(), "gitops/api/v1alpha1") {
			require.NotEmpty(t, s.enum, s.typ)
		}
		walk(s.elem)
		walk(s.inside)
		for _, f := range s.fields {
			walk(f.shape)
		}
	}
	all := shapes()
	for _, s := range []*shape{all.workerDeployment, all.connection, all.resourceTemplate, all.config, all.waiver, all.routing,
		all.simulation, all.status, all.spec, all.routingSpec, all.podTemplate} {
		walk(s)
	}
	require.Greater(t, len(seen), 200)
}

func TestOwnedEnvIsSorted(t *testing.T) {
	require.True(t, slices.IsSorted(OwnedEnv()))
	require.True(t, slices.IsSorted(LegacyEnv()))
}

func TestNamesOfPlaces(t *testing.T) {
	require.True(t, isInside("a/b.yaml"))
	for _, p := range []string{"", ".", "..", "../a", "a/..", "a/../b", "/a", "a//b", "a/", "a\\b", ".git/x", "a/.GIT/b", "a\nb", "./a"} {
		require.False(t, isInside(p), p)
	}
	for _, b := range []string{"main", "env/prod", "a.b", "release-1"} {
		require.True(t, isBranch(b), b)
	}
	for _, b := range []string{"", "-a", "a..b", "a b", "/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a.lock/b", "a.", "@", "HEAD", "a@{b", "a~1", "a^", "a:b",
		"a?", "a*", "a[", `a\b`, "a\x7f"} {
		require.False(t, isBranch(b), b)
	}
}
