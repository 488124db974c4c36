package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// inFiles gives the files that the snapshot's objects are in.
func inFiles(spec, connection, template string) change {
	return func(g *given) {
		g.SpecPath, g.ConnectionPath = spec, connection
		for i := range g.Resources {
			g.Resources[i].Path = template
		}
	}
}

// TestPathsAreRecorded with the next change, and are no change by themselves. Of equal copies none is recorded.
func TestPathsAreRecorded(t *testing.T) {
	base := all(recorded, templates(tmpl("hpa")), carries("v1", "hpa"), inFiles("team/x.yaml", "team/c.yaml", "team/t.yaml"))
	same := decide(t, of(base), allowed)
	require.Empty(t, same.Versions)
	require.Empty(t, same.Record.Connection.Path, "a path is no change")

	next := decide(t, of(base, asks("v2")), allowed).Record
	require.Equal(t, "team/x.yaml", next.SpecPath)
	require.Equal(t, "team/c.yaml", next.Connection.Path)
	for _, v := range next.Versions {
		for _, r := range v.Resources {
			require.Equal(t, "team/t.yaml", r.Path, v.BuildID)
		}
	}

	copied := decide(t, of(base, asks("v2"), func(g *given) {
		g.rec.SpecPath, g.SpecPath, g.SpecCopied, g.ConnectionPath, g.Resources[0].Copied = "was.yaml", "copy.yaml", true, "", true
	}), allowed).Record
	require.Equal(t, "was.yaml", copied.SpecPath)
	require.Empty(t, copied.Connection.Path)
	require.Empty(t, copied.Versions[0].Resources[0].Path)

	kept := decide(t, of(base, func(g *given) {
		g.rec.Connection.Path, g.Spec, g.SpecPath = "team/c.yaml", nil, ""
	}), allowed).Record
	require.Equal(t, "team/c.yaml", kept.Connection.Path)

	// A retired worker deployment keeps its own connection while the one in Git leads elsewhere, and the file that this
	// was in.
	retired := decide(t, of(rampsAt(10, time.Minute), base, retires(v1alpha1.KeepCurrent, time.Hour), leadsTo("elsewhere:7233"), func(g *given) {
		g.rec.Connection.Path, g.ConnectionPath = "was.yaml", "new.yaml"
	}), allowed).Record
	require.Nil(t, retired.Desired.Ramping, "the record is written anew")
	require.Equal(t, "was.yaml", retired.Connection.Path)
}
