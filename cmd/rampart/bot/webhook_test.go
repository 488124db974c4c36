package bot

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/webhook"
)

// What becomes of a pull request of the bot's is told by webhooks, whichever of its branches it is of.
func TestPullRequestsThatAreListenedFor(t *testing.T) {
	checkout := rollout.Name{Namespace: "shop", Name: "checkout"}
	for branch, want := range map[string]int{
		rollout.ProposalBranch("prod", checkout): http.StatusAccepted, gitops.OutputBranch("prod"): http.StatusAccepted, "feature": http.StatusOK,
	} {
		l := &loop{App: &cmdutil.App{Now: time.Now}, bell: webhook.NewBell()}
		l.bell.Ring() // by a group that ended late, just before
		config := l.webhooks(cmdutil.RepositoryFlags{URL: "https://git.example.com/team/workers.git", Branch: "main"})
		config.Log = slog.New(slog.DiscardHandler)
		handler, err := webhook.NewHandler(t.Context(), config)
		require.NoError(t, err)
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(fmt.Sprintf(`{"pull_request":{"head":{"ref":%q}}}`, branch)))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-GitHub-Event", "pull_request")
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		require.Equal(t, want, answer.Code, branch)
		require.Equal(t, want == http.StatusAccepted, l.hooked.Load(), "the forge is asked again about %s", branch)
	}
}

// Webhooks are about the branches that the last cycle could read, and about all before the first one.
func TestWatchedBranches(t *testing.T) {
	l := &loop{}
	watched := func() (out []string) {
		for _, b := range []string{"main", "deploy", "feature"} {
			if l.watched(b, "main") {
				out = append(out, b)
			}
		}
		return out
	}
	output := func(branch string) rollout.EnvironmentWorld {
		return rollout.EnvironmentWorld{Environment: v1alpha1.Environment{Output: v1alpha1.Output{Branch: branch}}}
	}
	require.Equal(t, []string{"main", "deploy", "feature"}, watched())
	l.watch(rollout.World{Environments: []rollout.EnvironmentWorld{output(""), output("deploy")}})
	require.Equal(t, []string{"main", "deploy"}, watched())
	l.watch(rollout.World{})
	require.Equal(t, []string{"main", "deploy"}, watched(), "a configuration that cannot be read changes nothing")
	l.watch(rollout.World{Environments: []rollout.EnvironmentWorld{output("feature")}})
	require.Equal(t, []string{"main", "feature"}, watched())
}
