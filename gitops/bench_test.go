package gitops

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// BenchmarkSurvey is what it takes to put the world together when one of 10 000 specs changed. A cycle pays that
// whether the bot or a person moved the branch.
func BenchmarkSurvey(b *testing.B) {
	const deployments = 10_000
	repo := gittest.NewBareRepo(b)
	files := map[string]string{"connection.yaml": connectionYAML}
	name := func(i int) string { return fmt.Sprintf("worker-%05d", i) }
	spec := func(i int) string { return fmt.Sprintf("workers/part-%02d/%s/worker.yaml", i/250, name(i)) }
	for i := range deployments {
		files[spec(i)] = specYAML("shop", name(i), "i:1")
		files["deploy/shop/"+name(i)+"/routing.yaml"] = routingYAML(name(i), spec(i))
	}
	repo.Commit(gittest.Commit{Write: files})
	r, err := Open(Config{URL: repo.URL(), Branch: "main", CacheDir: b.TempDir(), Author: "rampart", Email: "rampart@example.com",
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return gittest.Epoch }})
	require.NoError(b, err)
	defer func() { require.NoError(b, r.Close()) }()
	var trees []tree.Commit
	for i := range 3 {
		s, _, err := r.Survey(b.Context())
		require.NoError(b, err)
		require.Len(b, s.World.Environments[0].Entries, deployments)
		trees = append(trees, tree.Commit{Ctx: b.Context(), Mirror: r.mirror, Hash: r.lastTips["main"].Tree})
		repo.Commit(gittest.Commit{Write: map[string]string{spec(7): specYAML("shop", name(7), fmt.Sprint("i:", i+2))}})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		t := trees[1+i%2]
		world, err := r.survey.reader.Read(t, func(v1alpha1.Environment) (tree.Tree, string, error) { return t, "base", nil }, rollout.GitContext{})
		require.NoError(b, err)
		require.NotNil(b, world.Environments[0].Entries[7].Full)
	}
}
