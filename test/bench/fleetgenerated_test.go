package bench

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// The same seed is the same repository, to the byte; another is another.
func TestFleetIsDeterministic(t *testing.T) {
	f := fleet{Deployments: 120, Unrelated: 30, History: 20, Seed: 7}
	s := f.settle(t)
	start := time.Now()
	tip := f.commit(t, s).Tip("main")
	t.Log(time.Since(start), len(s.files))
	require.Equal(t, tip, f.commit(t, f.settle(t)).Tip("main"))
	f.Seed++
	require.NotEqual(t, tip, f.commit(t, f.settle(t)).Tip("main"))
}

// The repository holds at its tip what was settled, and each worker deployment has its versions, status and routing.
func TestFleetIsComplete(t *testing.T) {
	f := fleet{Deployments: 3, Unrelated: 5, History: 10, Seed: 7}
	s := f.settle(t)
	files := f.commit(t, s).Files("main")
	for p, data := range s.files {
		require.Empty(t, cmp.Diff(data, files[p]), p)
	}
	for i := range f.Deployments {
		require.Contains(t, files, f.recordPath(i)+"/routing.yaml")
		require.Contains(t, files, f.recordPath(i)+"/status.yaml")
		d := s.temporal.Deployments[f.team(i)+"/"+f.name(i)]
		require.Len(t, d.Builds, versions)
		for _, b := range d.Builds {
			require.Contains(t, files, f.recordPath(i)+"/versions/"+b.ID+"/deployment.yaml")
		}
		require.Equal(t, d.Builds[versions-1].ID, d.Routing.Current)
	}
}
