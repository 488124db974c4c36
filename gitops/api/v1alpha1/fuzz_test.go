package v1alpha1_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// FuzzDecode: never a panic, never long, the same twice, and problems where they can be. What is good is written as
// JSON and read back as the same.
func FuzzDecode(f *testing.F) {
	samples, err := filepath.Glob("testdata/*.yaml")
	require.NoError(f, err)
	for _, name := range samples {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(data)
	}
	archives, err := filepath.Glob("testdata/*.txtar")
	require.NoError(f, err)
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		require.NoError(f, err)
		for _, file := range archive.Files {
			f.Add(file.Data)
		}
	}
	f.Add([]byte(head + bomb(9, "x")))
	f.Add([]byte(head + "a: &a {<<: *a}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		start := time.Now()
		documents, problems := v1alpha1.Decode("f", data)
		require.Less(t, time.Since(start), 10*time.Second)
		again, problemsAgain := v1alpha1.Decode("f", append([]byte{}, data...))
		exported := cmp.FilterPath(func(p cmp.Path) bool {
			name, ok := p.Last().(cmp.StructField)
			return ok && (name.Name() == "data" || name.Name() == "index" || name.Name() == "flawed")
		}, cmp.Ignore())
		require.Empty(t, cmp.Diff(documents, again, exported))
		require.Equal(t, problems, problemsAgain)
		for _, p := range problems {
			require.NotEmpty(t, p.Message)
			require.Contains(t, []v1alpha1.Severity{v1alpha1.Error, v1alpha1.Warning}, p.Severity)
		}
		for i := range documents {
			d := &documents[i]
			require.False(t, d.Object != nil && v1alpha1.HasErrors(d.Problems))
			for _, p := range d.Problems {
				d.Position(p.Path)
			}
			if d.Object != nil {
				roundTrip(t, d.Object)
			}
		}
	})
}

// FuzzCanonicalJSON: what is JSON has one canonical form, which is still the same value.
func FuzzCanonicalJSON(f *testing.F) {
	f.Add([]byte(`{"b":1.50,"a":["<\u00e9\ud83d\ude00",null,true]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		canonical, err := v1alpha1.CanonicalJSON(data)
		if err != nil {
			return
		}
		require.True(t, json.Valid(canonical))
		again, err := v1alpha1.CanonicalJSON(canonical)
		require.NoError(t, err)
		require.Equal(t, string(canonical), string(again))
		var first, second any
		require.NoError(t, json.Unmarshal(data, &first))
		require.NoError(t, json.Unmarshal(canonical, &second))
		require.Equal(t, first, second)
	})
}
