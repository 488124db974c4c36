package git

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

func benchServer(b *testing.B, deployments int) (*gittest.Repo, way) {
	b.Helper()
	r := gittest.NewBareRepo(b)
	r.Commit(gittest.Commit{Write: manyFiles(deployments)})
	r.Git("repack", "-adq")
	return r, way{url: gittest.ServeHTTP(b, r, gittest.HTTPConfig{}).URL}
}

func BenchmarkNoChangeFetch(b *testing.B) {
	_, w := benchServer(b, 1000)
	m := openMirror(b, w)
	fetch(b, m, "main")
	for b.Loop() {
		if tip := fetch(b, m, "main"); moveOf(tip) != "none" {
			b.Fatal(moveOf(tip))
		}
	}
}

// One spec changes among a thousand; its manifest, routing and status are written back.
func BenchmarkOneChangeFetchToPush(b *testing.B) {
	r, w := benchServer(b, 1000)
	m := openMirror(b, w)
	tip := fetch(b, m, "main")
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		dir := fmt.Sprintf("workers/team-%02d/app-%04d/", i%20, i%1000)
		r.Commit(gittest.Commit{Write: map[string]string{dir + "worker.yaml": spec(i, i+2)}})
		b.StartTimer()
		now := fetch(b, m, "main")
		if moveOf(now) != "forward" {
			b.Fatal(moveOf(now))
		}
		changed := 0
		err := m.Diff(tip.Tree, now.Tree, func(path string, e Entry) error {
			changed++
			_, err := m.Blob(e.Hash, 1<<20)
			return err
		})
		require.NoError(b, err)
		require.Equal(b, 1, changed)
		version := fmt.Sprint(i)
		s := stage(b, m, commitOn(now, put(dir+"rendered/v3.yaml", spec(i, -i-1)), put(dir+"routing.yaml", version), put(dir+"status.yaml", version)))
		_, err = m.Push(b.Context(), s)
		require.NoError(b, err)
		tip = Tip{Branch: "main", Commit: s.Commit, Tree: s.Tree}
	}
}

func BenchmarkStageAndPackThousand(b *testing.B) {
	r := gittest.NewBareRepo(b)
	r.Commit(gittest.Commit{Write: manyFiles(1000)})
	m := openFile(b, r)
	tip := fetch(b, m, "main")
	var changes []Change
	for i := range 1000 {
		dir := fmt.Sprintf("workers/team-%02d/app-%04d/", i%20, i)
		changes = append(changes, put(dir+"rendered/v3.yaml", spec(i, 3)), put(dir+"routing.yaml", fmt.Sprint(i)), put(dir+"status.yaml", fmt.Sprint(-i)))
	}
	for b.Loop() {
		s := stage(b, m, commitOn(tip, changes...))
		_, err := encodePack(s.objs)
		require.NoError(b, err)
	}
}

func BenchmarkColdFetch(b *testing.B) {
	_, w := benchServer(b, 1000)
	for b.Loop() {
		fetch(b, openMirror(b, w), "main")
	}
}
