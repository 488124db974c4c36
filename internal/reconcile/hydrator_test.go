package reconcile

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// asked is a scene that knows which commit asked.
type asked struct {
	*scene
	origin rollout.GitContext
}

func (a asked) Origins(_ context.Context, snapshots []rollout.Snapshot) ([]rollout.GitContext, error) {
	out := make([]rollout.GitContext, len(snapshots))
	for i := range out {
		out[i] = a.origin
	}
	return out, nil
}

var ada = rollout.GitContext{
	Commit: strings.Repeat("c0ffee00", 5), Author: "Ada Lovelace <ada@example.com>", When: time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC),
	Message: "Roll out checkout v2\n\nIt charges <once> & no more.\n\nArgocd-reference-commit-sha: abcdef0\nSigned-off-by: Ada\n",
}

// TestHydrator: each commit that has a file of a worker deployment names the commit that asked, if the environment
// wants it and it is known. What it names makes no commit.
func TestHydrator(t *testing.T) {
	for name, tc := range map[string]struct {
		hydrator bool
		origin   rollout.GitContext
		commits  v1alpha1.CommitsPer
		want     bool
	}{
		"wanted":                             {hydrator: true, origin: ada, want: true},
		"wanted, commits of their own":       {hydrator: true, origin: ada, commits: v1alpha1.CommitPerDeployment, want: true},
		"not wanted":                         {origin: ada},
		"the commit that asked is not known": {hydrator: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := asked{newScene(t), tc.origin}
			env := &a.world.Environments[0].Environment
			env.CD.Hydrator, env.Output.Commits = tc.hydrator, tc.commits
			a.world.Environments[0].Deployments[0].Environment = *env
			r := a.reconciler()
			r.Source, r.History, r.RepositoryURL = a, a, "https://git.example.com/platform/workers"
			a.once(r)
			require.Len(t, a.commits, 1)
			parts := a.commits[0].Parts
			if tc.commits == "" {
				parts = []rollout.CommitPart{{Changes: a.commits[0].Changes, Message: a.commits[0].Message}}
			}
			require.Len(t, parts, 1)
			var file string
			for _, c := range parts[0].Changes {
				if c.Path == "deploy/hydrator.metadata" {
					file = c.Data
				}
			}
			require.Equal(t, tc.want, file != "")
			require.Equal(t, tc.want, strings.Contains(parts[0].Message, "Argocd-reference-commit"))
			a.once(r)
			require.Len(t, a.commits, 1, "nothing else changed")
			if !tc.want {
				return
			}
			require.Equal(t, `{
  "repoURL": "https://git.example.com/platform/workers",
  "drySha": "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00",
  "author": "Ada Lovelace <ada@example.com>",
  "date": "2026-03-01T11:00:00Z",
  "subject": "Roll out checkout v2",
  "body": "It charges <once> & no more.\n\nSigned-off-by: Ada",
  "references": [
    {
      "commit": {
        "sha": "abcdef0"
      }
    }
  ]
}
`, file)
			_, trailers, _ := strings.Cut(parts[0].Message, "\n\nRampart-Spec: ")
			_, trailers, _ = strings.Cut(trailers, "Argocd-")
			require.Equal(t, `reference-commit-author: Ada Lovelace <ada@example.com>
Argocd-reference-commit-date: 2026-03-01T11:00:00Z
Argocd-reference-commit-subject: Roll out checkout v2
Argocd-reference-commit-sha: c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00
Argocd-reference-commit-repourl: https://git.example.com/platform/workers
`, trailers)
			require.NotContains(t, trailers, "\n\n", "trailers are one paragraph")
		})
	}
}

// TestHydratorFileBlocked: what somebody puts at the path of hydrator.metadata keeps nothing else from its commit.
func TestHydratorFileBlocked(t *testing.T) {
	config := "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec:\n  environments:\n" +
		"  - {name: prod, specs: [workers/**], output: {path: deploy}, cd: {hydrator: true}}\n"
	for name, blocked := range map[string]bool{"the path is free": false, "a folder is there": true} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{layout.Config: config, "workers/spec.yaml": specText}
			if blocked {
				files["deploy/hydrator.metadata/x"] = ""
			}
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: files})
			var logged bytes.Buffer
			log := slog.New(slog.NewTextHandler(&logged, nil))
			repo, err := gitops.Open(gitops.Config{URL: r.URL(), Branch: "main", CacheDir: t.TempDir(), Author: "rampart",
				Email: "rampart@example.com", Log: log, Now: time.Now})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, repo.Close()) })
			s := newScene(t)
			bot := s.reconciler()
			bot.Source, bot.History, bot.Committer, bot.Log = repo, repo, repo, log

			report := s.once(bot)
			require.Empty(t, report.Failures)
			require.Len(t, report.Commits, 1)
			written := r.Files("main")
			require.Contains(t, written, "deploy/shop/checkout/routing.yaml")
			_, named := written["deploy/hydrator.metadata"]
			require.Equal(t, !blocked, named)
			message := r.Git("log", "-1", "--format=%B", "main")
			require.Equal(t, !blocked, strings.Contains(message, "Argocd-reference-commit-sha"))
			require.Equal(t, blocked, strings.Contains(logged.String(), "file=deploy/hydrator.metadata"), logged.String())
		})
	}
}

// history knows the commits that asked, by worker deployment, and counts how often it is asked.
type history struct {
	*scene
	origins map[string]rollout.GitContext
	asked   int
}

func (h *history) Origins(_ context.Context, snapshots []rollout.Snapshot) ([]rollout.GitContext, error) {
	h.asked++
	out := make([]rollout.GitContext, len(snapshots))
	for i, s := range snapshots {
		out[i] = h.origins[s.Deployment.Name]
	}
	return out, nil
}

// TestLastOrigin: of the commits that asked, the one that came to the branch last is named, whatever they say of their
// time. Commits for each worker deployment name their own, and the file at the end of the push is the same.
func TestLastOrigin(t *testing.T) {
	first, last := ada, ada
	first.Commit, first.Place, first.When = strings.Repeat("1", 40), -2, ada.When.Add(time.Hour)
	last.Commit, last.Place = strings.Repeat("2", 40), -1
	for _, commits := range []v1alpha1.CommitsPer{"", v1alpha1.CommitPerDeployment} {
		t.Run(string(commits), func(t *testing.T) {
			origins := map[string]rollout.GitContext{"a": first, "b": last, "c": first, "d": {}}
			h := &history{scene: newScene(t), origins: origins}
			env := &h.world.Environments[0]
			env.Environment.CD.Hydrator, env.Environment.Output.Commits = true, commits
			one := env.Deployments[0]
			env.Deployments = nil
			for _, name := range []string{"a", "b", "c", "d"} {
				spec, d := *one.Spec, one
				spec.Metadata.Name = name
				d.Deployment.Name, d.Spec, d.Record.Dir = name, &spec, "deploy/shop/"+name
				env.Deployments = append(env.Deployments, d)
			}
			r := h.reconciler()
			r.Source, r.History = h, h
			h.once(r)
			require.Equal(t, 1, h.asked, "once for all")
			require.Len(t, h.commits, 1)
			c := h.commits[0]
			parts, want := c.Parts, []string{"1 1", "2 2", "2 1", "2 "}
			if commits == "" {
				parts, want = []rollout.CommitPart{{Changes: c.Changes, Message: c.Message}}, []string{"2 2"}
			}
			var got []string
			for _, p := range parts {
				named := ""
				for _, f := range p.Changes {
					if f.Path == "deploy/hydrator.metadata" {
						_, sha, _ := strings.Cut(f.Data, `"drySha": "`)
						named = sha[:1]
					}
				}
				_, sha, _ := strings.Cut(p.Message, "Argocd-reference-commit-sha: ")
				got = append(got, named+" "+sha[:min(1, len(sha))])
			}
			require.Equal(t, want, got)
		})
	}
}
