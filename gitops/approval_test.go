package gitops

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/gittest"
)

const threeEnvironments = `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: dev, specs: ["dev/**"], output: {path: out/dev}, namespace: shop}
    - {name: prod, specs: ["prod/**"], output: {path: out/prod}, namespace: shop, approval: {mode: Direct, scope: Rollout}}
    - {name: prod-eu, specs: ["eu/**"], output: {path: out/eu}, namespace: shop, approval: {mode: PullRequest, scope: Step}}
`

// The bot's demand tightens what a repository says and never loosens it, for the environment and for each of its
// snapshots.
func TestRequireApproval(t *testing.T) {
	files := map[string]string{layout.Config: threeEnvironments, "dev/a.yaml": specYAML("shop", "a", "x"), "prod/b.yaml": specYAML("shop", "b", "x"),
		"eu/c.yaml": specYAML("shop", "c", "x")}
	direct := v1alpha1.Approval{Mode: v1alpha1.Direct, Scope: v1alpha1.ScopeStep}
	wide := v1alpha1.Approval{Mode: v1alpha1.Direct, Scope: v1alpha1.ScopeRollout}
	asked := v1alpha1.Approval{Mode: v1alpha1.PullRequest, Scope: v1alpha1.ScopeStep}
	askedWide := v1alpha1.Approval{Mode: v1alpha1.PullRequest, Scope: v1alpha1.ScopeRollout}
	const tightened = "approval is PullRequest with scope Rollout, tightened from Direct with scope Rollout by the bot's configuration (--require-approval)"
	for name, c := range map[string]struct {
		floors []string
		want   [3]v1alpha1.Approval
		says   []string
	}{
		"none":    {nil, [3]v1alpha1.Approval{direct, wide, asked}, nil},
		"one":     {[]string{"prod"}, [3]v1alpha1.Approval{direct, askedWide, asked}, []string{"rampart.yaml: environment prod: " + tightened}},
		"a scope": {[]string{"prod*=Step"}, [3]v1alpha1.Approval{direct, asked, asked}, []string{"rampart.yaml: environment prod: approval is PullRequest with scope Step, tightened from Direct with scope Rollout by the bot's configuration (--require-approval)"}},
		// The widest scope loosens nothing that is narrower.
		"wide":       {[]string{"prod*=Rollout"}, [3]v1alpha1.Approval{direct, askedWide, asked}, []string{"rampart.yaml: environment prod: " + tightened}},
		"two":        {[]string{"prod=Rollout", "prod=Step"}, [3]v1alpha1.Approval{direct, asked, asked}, []string{"rampart.yaml: environment prod: approval is PullRequest with scope Step, tightened from Direct with scope Rollout by the bot's configuration (--require-approval)"}},
		"all others": {[]string{"!dev"}, [3]v1alpha1.Approval{direct, askedWide, asked}, []string{"rampart.yaml: environment prod: " + tightened}},
		"renamed":    {[]string{"production"}, [3]v1alpha1.Approval{direct, wide, asked}, []string{`rampart.yaml: --require-approval "production" is about none of its environments`}},
	} {
		t.Run(name, func(t *testing.T) {
			var floors []index.ApprovalFloor
			for _, text := range c.floors {
				f, err := index.ParseApprovalFloor(text)
				require.NoError(t, err)
				floors = append(floors, f)
			}
			w, err := index.ReadFolder(writeFolder(t, files), index.RequireApproval(floors))
			require.NoError(t, err)
			var got [3]v1alpha1.Approval
			for i, env := range w.Environments {
				got[i] = env.Environment.Approval
				require.Equal(t, got[i], env.Deployments[0].Environment.Approval)
			}
			require.Equal(t, c.want, got)
			require.Equal(t, c.says, problems(w))
		})
	}
}

// The bot does not merge by itself what it has to ask for. The repository says whether it does, and would loosen what
// it is held to.
func TestRequireApprovalMergesNothing(t *testing.T) {
	files := map[string]string{layout.Config: strings.ReplaceAll(threeEnvironments, "output:", "pullRequests: {autoMerge: Squash}, output:"), "dev/a.yaml": specYAML("shop", "a", "x"),
		"prod/b.yaml": specYAML("shop", "b", "x"), "eu/c.yaml": specYAML("shop", "c", "x")}
	w, err := index.ReadFolder(writeFolder(t, files), index.RequireApproval([]index.ApprovalFloor{{Environments: "prod-eu"}}))
	require.NoError(t, err)
	var got []bool
	for _, env := range w.Environments {
		got = append(got, env.PeopleMerge)
	}
	require.Equal(t, []bool{false, false, true}, got)
	require.Equal(t, []string{"rampart.yaml: environment prod-eu: pullRequests.autoMerge is not for raises, which people approve by the bot's configuration (--require-approval)"},
		problems(w))
}

// A branch is read as a folder is, and again after it moved.
func TestRequireApprovalOfABranch(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{layout.Config: threeEnvironments}})
	repo, err := Open(Config{URL: r.URL(), Branch: "main", CacheDir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		Options: []index.Option{index.RequireApproval([]index.ApprovalFloor{{Environments: "prod"}})}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, repo.Close()) })
	for range 2 {
		w := read(t, repo)
		require.Equal(t, v1alpha1.PullRequest, w.Environments[1].Environment.Approval.Mode)
		require.Len(t, slices.DeleteFunc(problems(w), func(p string) bool { return strings.Contains(p, "matches no file") }), 1)
		r.Commit(gittest.Commit{Write: map[string]string{"dev/a.yaml": specYAML("shop", "a", "x")}})
	}
}

func TestParseApprovalFloor(t *testing.T) {
	for text, want := range map[string]string{"": "want a glob", "!": "want a glob", "a[": "want a glob", "=Step": "want a glob",
		"prod=step": `scope "step" is neither Step nor Rollout`, "prod=": `scope "" is neither`} {
		_, err := index.ParseApprovalFloor(text)
		require.ErrorContains(t, err, want, text)
	}
}
