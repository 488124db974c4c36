package reconcile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// far is a Temporal that takes its time, and knows nothing.
type far struct {
	delay time.Duration
	mu    sync.Mutex
	asked int
}

func (f *far) Observe(context.Context, v1alpha1.Connection, rollout.Ask) rollout.Observation {
	<-time.After(f.delay)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return rollout.Observation{At: time.Now(), Exists: rollout.No}
}

// pushAgainAndAgain is another writer, who never waits for the bot. It gives how many commits it pushed.
func pushAgainAndAgain(ctx context.Context, m *git.Mirror, period time.Duration) (pushed int, err error) {
	who := git.Signature{Name: "other", Email: "other@example.com", When: gittest.Epoch}
	every := time.NewTicker(period)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return pushed, nil
		case <-every.C:
		}
		for done := false; !done; {
			tip, err := m.Fetch(context.WithoutCancel(ctx), "main")
			if err != nil {
				return pushed, err
			}
			s, err := m.Stage(git.CommitRequest{Branch: "main", Parent: tip.Commit, Message: "other", Author: who, Committer: who,
				Changes: []git.Change{{Path: fmt.Sprintf("other/%d", pushed), Data: []byte("x")}}})
			if err != nil {
				return pushed, err
			}
			_, err = m.Push(context.WithoutCancel(ctx), s)
			var moved *git.MovedError
			if err != nil && !errors.As(err, &moved) {
				return pushed, err
			}
			done = err == nil
		}
		pushed++
	}
}

// Fifty worker deployments change at once, and to observe them takes five times as long as somebody else needs between
// two pushes. The commit lands within the tries, Temporal is asked once, and nothing of the other's is lost: although
// to observe them takes longer than facts are good for a raise, too.
func TestFiftyChangeBesideABusyWriter(t *testing.T) {
	const many = 50
	files := map[string]string{}
	for i := range many {
		name := fmt.Sprintf("w%02d", i)
		files["workers/"+name+".yaml"] = strings.Replace(specText, "checkout", name, 1)
	}
	botOn := func(temporal *far) (*gittest.Repo, *Reconciler) {
		r := gittest.NewBareRepo(t)
		r.Commit(gittest.Commit{Write: files})
		repo, err := gitops.Open(gitops.Config{URL: r.URL(), Branch: "main", CacheDir: t.TempDir(), Author: "rampart", Email: "rampart@example.com",
			Log: slog.New(slog.DiscardHandler), Now: time.Now})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, repo.Close()) })
		bot := newScene(t).reconciler()
		bot.Source, bot.Committer, bot.Observer, bot.Now, bot.Parallel = repo, repo, temporal, time.Now, 1
		return r, bot
	}
	// How often the other one pushes goes by what a try takes here by itself, which the race detector makes ten times
	// as long.
	_, alone := botOn(&far{})
	start := time.Now()
	_, err := alone.Cycle(t.Context())
	require.NoError(t, err)
	period := max(200*time.Millisecond, 3*time.Since(start))
	temporal := &far{delay: 5 * period / many}
	r, bot := botOn(temporal)
	var log bytes.Buffer
	bot.Limits.FactMaxAge = 2 * period
	bot.Log = slog.New(slog.NewTextHandler(&log, nil))

	other, err := git.Open(git.Config{URL: r.URL(), Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		pushed, err := pushAgainAndAgain(ctx, other, period)
		if err != nil {
			t.Error(err)
		}
		done <- pushed
	}()
	report, err := bot.Cycle(t.Context())
	cancel()
	pushed := <-done
	require.NoError(t, err)
	require.Len(t, report.Commits, 1)
	tries := 1 + strings.Count(log.String(), "starting over")
	t.Logf("%d tries beside %d pushes", tries, pushed)
	require.Greater(t, tries, 1, "it was hindered at all")
	require.Equal(t, 2*many, temporal.asked, "the two questions of each were asked once")
	landed := r.Files("main")
	for i := range pushed {
		require.Contains(t, landed, fmt.Sprintf("other/%d", i))
	}
	for i := range many {
		require.Contains(t, landed, fmt.Sprintf("deploy/shop/w%02d/routing.yaml", i))
	}
	require.Equal(t, fmt.Sprint(2+pushed), r.Git("rev-list", "--count", "--first-parent", "main"), "one commit of ours, none empty, none lost")
	r.Fsck()
}
