package commitstatus

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

const v1, v2 = "deploy/shop/checkout/versions/v1", "deploy/shop/checkout/versions/v2"

// held are the commits of a branch, the newest first.
type held struct {
	holders []rollout.Holder
	err     error
}

func (h *held) Holders(context.Context, v1alpha1.Environment, []string, int) ([]rollout.Holder, error) {
	return h.holders, h.err
}

// said is a forge that answers so.
type said struct {
	mu       sync.Mutex
	statuses map[string][]forge.Status
	asked    []string
	written  []string
	err      error
	takes    time.Duration
	// broken are commits that cannot be asked about.
	broken map[string]error
}

// fails and slow say how it answers from now on.
func (s *said) fails(err error) { s.mu.Lock(); defer s.mu.Unlock(); s.err = err }

func (s *said) slow(takes time.Duration) { s.mu.Lock(); defer s.mu.Unlock(); s.takes = takes }

// answer takes its time, and gives the error that it answers with.
func (s *said) answer(ctx context.Context) error {
	s.mu.Lock()
	takes, err := s.takes, s.err
	s.mu.Unlock()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

func (s *said) Statuses(ctx context.Context, commit string) ([]forge.Status, error) {
	s.mu.Lock()
	s.asked = append(s.asked, commit)
	s.mu.Unlock()
	err := s.answer(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.statuses[commit], cmp.Or(err, s.broken[commit])
}

// question asks about the statuses of one version.
func question(contexts ...string) rollout.StatusQuestion {
	return rollout.StatusQuestion{Environment: v1alpha1.Environment{Name: "prod"}, Contexts: contexts, Versions: []string{v1}}
}

func reader(c Commits, f StatusReader) *Reader {
	return NewReader(ReaderConfig{Commits: c, Forge: f, Where: "https://git.example.com/shop/workers", Now: time.Now, Log: slog.New(slog.DiscardHandler)})
}

func in(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t) })
}

// The newest commit that holds the version and has the status counts, whatever older ones say.
func TestTheNewestThatHoldsItCounts(t *testing.T) {
	in(t, func(t *testing.T) {
		yes, no := []bool{true}, []bool{false}
		on := &held{holders: []rollout.Holder{{Commit: "c4", Holds: yes}, {Commit: "c3", Holds: yes}, {Commit: "c2", Holds: yes}, {Commit: "c1", Holds: no}}}
		f := &said{statuses: map[string][]forge.Status{
			"c3": {{Context: "argocd/workers", State: forge.StatusPending}, {Context: "ci", State: forge.StatusSuccess}},
			"c2": {{Context: "argocd/workers", State: forge.StatusSuccess}, {Context: "scan", State: forge.StatusSuccess}},
			"c1": {{Context: "old", State: forge.StatusSuccess}},
		}}
		r := reader(on, f)
		defer r.Close()
		got := r.Read(t.Context(), question("argocd/workers", "ci", "old", "scan"))[0]
		require.JSONEq(t, `"pending"`, string(got["status:argocd/workers"].Value))
		require.Contains(t, got["status:argocd/workers"].Source, "of c3 at https://git.example.com/shop/workers")
		require.JSONEq(t, `"success"`, string(got["status:ci"].Value))
		require.JSONEq(t, `"success"`, string(got["status:scan"].Value))
		require.True(t, got["status:scan"].Fresh(time.Now()))
		require.Equal(t, "none of the newest 3 commits that hold "+v1+" has such a status", got["status:old"].Error, "a commit that does not hold it says nothing")
		require.Equal(t, []string{"c4", "c3", "c2"}, f.asked)

		f.asked = nil
		r.Read(t.Context(), question("argocd/workers", "ci", "old", "scan"))
		require.Empty(t, f.asked, "they were asked about a moment ago")
		r.Read(t.Context(), question("argocd/workers"))
		require.Empty(t, f.asked, "nor are they for a part of it")
		time.Sleep(DefaultLookEvery)
		r.Read(t.Context(), question("argocd/workers"))
		synctest.Wait()
		require.Equal(t, []string{"c4", "c3"}, f.asked, "no further than the first answer")
	})
}

// The bot's own statuses are no facts, and a version that is on no commit has none.
func TestWhatIsNoFact(t *testing.T) {
	in(t, func(t *testing.T) {
		on := &held{holders: []rollout.Holder{{Commit: "c1", Holds: []bool{true}}}}
		f := &said{statuses: map[string][]forge.Status{"c1": {{Context: "rampart/prod", State: forge.StatusSuccess}}}}
		r := reader(on, f)
		defer r.Close()
		require.Contains(t, r.Read(t.Context(), question("rampart/prod"))[0]["status:rampart/prod"].Error, "do not count")
		require.Empty(t, f.asked)
		require.Contains(t, r.Read(t.Context(), question("cd"))[0]["status:cd"].Error, "has no such status")

		on.holders = nil
		require.Contains(t, r.Read(t.Context(), question("cd"))[0]["status:cd"].Error, "no commit holds "+v1)
		on.err = errors.New("the repository is away")
		require.Contains(t, r.Read(t.Context(), question("cd"))[0]["status:cd"].Error, "the repository is away")
		q := question("cd")
		q.Versions = []string{""}
		on.err = nil
		require.Contains(t, r.Read(t.Context(), q)[0]["status:cd"].Error, "no version")
	})
}

// A forge that is away is not known, and never success: what it said before grows old.
func TestAForgeThatIsAway(t *testing.T) {
	in(t, func(t *testing.T) {
		on := &held{holders: []rollout.Holder{{Commit: "c1", Holds: []bool{true}}}}
		f := &said{statuses: map[string][]forge.Status{"c1": {{Context: "cd", State: forge.StatusSuccess}}}}
		r := reader(on, f)
		defer r.Close()
		read := func() rollout.Fact { return r.Read(t.Context(), question("cd"))[0]["status:cd"] }
		require.True(t, read().Fresh(time.Now()))
		f.fails(&forge.UnavailableError{Op: "read", Where: "git.example.com", Said: "connection refused"})
		for range 5 {
			time.Sleep(DefaultLookEvery)
			read()
			synctest.Wait()
		}
		require.False(t, read().Fresh(time.Now()), "it is not known any more")
		require.Len(t, f.asked, 4, "it is left alone for a minute after each failure")

		// A newer commit hides what an older one said.
		on.holders = []rollout.Holder{{Commit: "c2", Holds: []bool{true}}, {Commit: "c1", Holds: []bool{true}}}
		got := read()
		require.Empty(t, got.Value)
		require.Contains(t, got.Error, "connection refused")
		f.fails(nil)
		time.Sleep(rest)
		got = read()
		require.JSONEq(t, `"success"`, string(got.Value))
		require.True(t, got.Fresh(time.Now()))
	})
}

// A forge that answers slowly is waited for once, for a second; what it says counts when it is there.
func TestASlowForgeIsWaitedForOnce(t *testing.T) {
	in(t, func(t *testing.T) {
		on := &held{holders: []rollout.Holder{{Commit: "c1", Holds: []bool{true}}}}
		f := &said{takes: 10 * time.Second, statuses: map[string][]forge.Status{
			"c1": {{Context: "cd", State: forge.StatusSuccess}}, "c2": {{Context: "cd", State: forge.StatusFailure}}}}
		r := reader(on, f)
		defer r.Close()
		read := func() (rollout.Fact, time.Duration) {
			began := time.Now()
			got := r.Read(t.Context(), question("cd"))[0]["status:cd"]
			return got, time.Since(began)
		}
		got, took := read()
		require.Equal(t, DefaultPatience, took)
		require.Contains(t, got.Error, "did not answer yet")
		_, took = read()
		require.Zero(t, took, "and not again")
		time.Sleep(f.takes)
		got, took = read()
		require.Zero(t, took)
		require.JSONEq(t, `"success"`, string(got.Value))

		on.holders = []rollout.Holder{{Commit: "c2", Holds: []bool{true}}, {Commit: "c1", Holds: []bool{true}}}
		got, took = read()
		require.Zero(t, took, "it was slow the last time")
		require.Contains(t, got.Error, "did not answer yet", "the older commit does not stand in for the newer one")
		time.Sleep(f.takes)
		synctest.Wait()
		got, _ = read()
		require.JSONEq(t, `"failure"`, string(got.Value))
	})
}

// Versions of one environment are asked about together.
func TestVersionsTogether(t *testing.T) {
	in(t, func(t *testing.T) {
		on := &held{holders: []rollout.Holder{{Commit: "c2", Holds: []bool{true, true}}, {Commit: "c1", Holds: []bool{true, false}}}}
		f := &said{statuses: map[string][]forge.Status{"c1": {{Context: "cd", State: forge.StatusSuccess}}}}
		r := reader(on, f)
		defer r.Close()
		q := question("cd")
		q.Versions = []string{v1, v2, v1}
		got := r.Read(t.Context(), q)
		require.JSONEq(t, `"success"`, string(got[0]["status:cd"].Value))
		require.Contains(t, got[1]["status:cd"].Error, "the commit that holds "+v2+" has no such status")
		require.Equal(t, got[0], got[2])
		require.Equal(t, []string{"c2", "c1"}, f.asked)
	})
}
