package reconcile

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// addressed notes the servers that are asked.
type addressed struct {
	*scene
	asked map[string]bool
}

func (a *addressed) Observe(ctx context.Context, c v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	a.asked[c.Spec.HostPort] = true
	return a.scene.Observe(ctx, c, ask)
}

// TestAnothersConnectionMovesNothing: another team's folder has a connection of the same namespace and name, behind or
// before the one that is recorded. It moves no worker to another server, asks no other server, and commits nothing. The
// connection's own file still moves them.
func TestAnothersConnectionMovesNothing(t *testing.T) {
	const manifest = "deploy/shop/checkout/versions"
	addressOf := func(r *gittest.Repo) string {
		for file, text := range r.Files("main") {
			if strings.HasPrefix(file, manifest) {
				_, address, _ := strings.Cut(text, "name: TEMPORAL_ADDRESS\n")
				line, _, _ := strings.Cut(strings.TrimSpace(address), "\n")
				return strings.Trim(strings.TrimPrefix(line, "value: "), `"`)
			}
		}
		return ""
	}
	for _, where := range []string{"another/connection.yaml", "zzz/connection.yaml"} {
		t.Run(where, func(t *testing.T) {
			spec, connection, _ := strings.Cut(specText, "---\n")
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: map[string]string{"team/spec.yaml": spec, "team/connection.yaml": connection}})
			repo, err := gitops.Open(gitops.Config{URL: r.URL(), Branch: "main", CacheDir: t.TempDir(), Author: "rampart", Email: "rampart@example.com",
				Log: slog.New(slog.DiscardHandler), Now: time.Now})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, repo.Close()) })
			s := newScene(t)
			asked := &addressed{s, map[string]bool{}}
			bot := s.reconciler()
			bot.Source, bot.Committer, bot.Observer = repo, repo, asked
			s.once(bot)
			require.Equal(t, "localhost:7233", addressOf(r))

			r.Commit(gittest.Commit{Write: map[string]string{where: strings.Replace(connection, "localhost", "another", 1)}})
			report := s.once(bot)
			require.Empty(t, report.Commits)
			require.Equal(t, "localhost:7233", addressOf(r))
			require.Equal(t, map[string]bool{"localhost:7233": true}, asked.asked)

			require.Contains(t, r.Files("main")["deploy/shop/checkout/routing.yaml"], "path: team/connection.yaml")

			r.Commit(gittest.Commit{Write: map[string]string{"team/connection.yaml": strings.Replace(connection, "hostPort", "mutualTLSSecretRef: {name: certificate}, hostPort", 1)}})
			require.Len(t, s.once(bot).Commits, 1, "the winner works in full")
			require.Contains(t, r.Files("main")["deploy/shop/checkout/routing.yaml"], "certificate")
		})
	}
}
