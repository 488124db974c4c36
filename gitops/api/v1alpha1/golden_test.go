package v1alpha1_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden decodes each file of each archive in testdata and compares what is said of it with the .want beside it.
func TestGolden(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, name := range archives {
		t.Run(filepath.Base(name), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			require.NoError(t, err)
			out := &txtar.Archive{Comment: archive.Comment}
			for _, f := range archive.Files {
				if filepath.Ext(f.Name) == ".want" {
					continue
				}
				want := strings.TrimSuffix(f.Name, filepath.Ext(f.Name)) + ".want"
				out.Files = append(out.Files, f, txtar.File{Name: want, Data: []byte(said(f.Name, f.Data))})
			}
			got := txtar.Format(out)
			if *update {
				require.NoError(t, os.WriteFile(name, got, 0o644))
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// said is what Decode says of a file, as text.
func said(name string, data []byte) string {
	documents, problems := v1alpha1.Decode(name, data)
	var b strings.Builder
	for _, d := range documents {
		state := fmt.Sprintf("%T", d.Object)
		switch {
		case d.Foreign():
			state = "foreign"
		case d.Object == nil:
			state = "refused"
		}
		fmt.Fprintf(&b, "document on line %d: %s %s/%s: %s\n", d.Line, d.Kind, d.Namespace, d.Name, state)
	}
	for _, p := range problems {
		fmt.Fprintf(&b, "%s %s\n", p.Severity, p)
	}
	return b.String()
}
