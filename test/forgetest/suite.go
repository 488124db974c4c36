package forgetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// Site is a forge in a test, with the adapter that is looked at.
type Site struct {
	*testing.T
	Place
	Cast
	// URL is where its front is, and its pages.
	URL   string
	Front Front
	// World and Server are nil for a real forge.
	World  *World
	Server *Server
	Kind   forge.Kind
	// Make gives an adapter.
	Make func(forge.Config) (forge.Forge, error)
	// Teams says that a team can be asked for a review.
	Teams bool
	// Commits says that an approval names the commit that it is for.
	Commits bool

	// Forge is the bot's.
	Forge forge.Forge
}

const (
	head     = "rampart/prod/payments/checkout"
	patience = time.Minute
	tick     = 20 * time.Millisecond
)

// As is the forge of somebody with that token.
func (s *Site) As(token string) forge.Forge {
	s.Helper()
	f, err := s.Make(forge.Config{Repository: s.Located(), Token: func(context.Context) (string, error) {
		return token, nil
	}})
	require.NoError(s, err)
	return f
}

// Checker is the adapter with a token, as doctor uses it.
func (s *Site) Checker(token string) forge.Checker {
	s.Helper()
	f, ok := s.As(token).(forge.Checker)
	require.True(s, ok)
	return f
}

// Located is the repository, by what Git clones from.
func (s *Site) Located() forge.Repository {
	s.Helper()
	located, err := forge.Locate(forge.Location{Clone: s.URL + "/" + s.Owner + "/" + s.Name + ".git", Kind: s.Kind,
		Base: s.URL})
	require.NoError(s, err)
	return located
}

func (s *Site) open(branch string) forge.PullRequest {
	s.Helper()
	s.Branch(branch)
	pr, err := s.Forge.Open(s.Context(), forge.Opening{Title: "Ramp checkout", Body: "why", Head: branch, Base: "main"})
	require.NoError(s, err)
	return pr
}

func (s *Site) get(number int64) forge.Details {
	s.Helper()
	d, err := s.Forge.Get(s.Context(), number)
	require.NoError(s, err)
	return d
}

// until is get, once the forge has done what it does in the background.
func (s *Site) until(number int64, done func(forge.Details) bool) (d forge.Details) {
	s.Helper()
	s.eventually(fmt.Sprintf("pull request %d", number), func() bool { d = s.get(number); return done(d) })
	return d
}

// eventually waits for a condition, which may fail the test: it is asked in the test's own goroutine.
func (s *Site) eventually(what string, done func() bool) {
	s.Helper()
	for end := time.Now().Add(patience); !done(); <-time.After(tick) {
		if time.Now().After(end) {
			s.Fatalf("%s: it did not come to that in %s", what, patience)
		}
	}
}

// looked is get, after the forge has found no conflict. A check of Gitea's that failed is only made again after another
// push.
func (s *Site) looked(number int64) forge.Details {
	s.Helper()
	again := time.Now().Add(patience / 4)
	return s.until(number, func(d forge.Details) bool {
		if !d.Mergeable && !s.simulated() && time.Now().After(again) {
			s.Logf("pull request %d is not found mergeable: pushing to its base", number)
			s.Push("main", map[string]string{"README.md": time.Now().String() + "\n"})
			again = time.Now().Add(patience / 4)
		}
		return d.Mergeable
	})
}

func is(state forge.State) func(forge.Details) bool {
	return func(d forge.Details) bool { return d.State == state }
}

func (s *Site) bot() forge.Person { return forge.Person{Login: s.Bot.Login, Self: true} }

func (s *Site) person() forge.Person { return forge.Person{Login: s.Person.Login} }

func refusedFor(t *testing.T, err error, reason forge.Reason) *forge.RefusedError {
	t.Helper()
	var refused *forge.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, reason, refused.Reason, refused.Error())
	return refused
}

func numbers(list []forge.PullRequest) (n []int64) {
	for _, pr := range list {
		n = append(n, pr.Number)
	}
	return n
}

// simulated says that the forge is one of ours, which can do what a real one cannot be brought to, and at once.
func (s *Site) simulated() bool { return s.World != nil }

// Run runs the table of tests, each on a repository of its own.
func Run(t *testing.T, start func(*testing.T) *Site) {
	for name, test := range map[string]func(*Site){
		"open": testOpen, "update": testUpdate, "labels": testLabels, "reviewers": testReviewers, "status": testStatus,
		"statuses": testStatuses,
		"closed":   testClosed, "a deleted account": testGhost, "approvals": testApprovals, "authors": testAuthors,
		"merge": testMerge, "merged by a person": testMergedByPerson, "pushed to the base": testPushedToBase,
		"automatic merge": testAutomaticMerge, "automatic merge taken back": testTakenBack,
		"automatic merge by another method": testOrderedAnew,
		"automatic merge of a person":       testOrderOfAPerson, "nothing to wait for": testNothingToWaitFor,
		"merging not allowed": testMergeNotAllowed, "not ready to merge": testNotReady,
		"list": testList, "since": testSince, "exists": testExists, "at once": testAtOnce,
		"renamed": testRenamed, "read only": testReadOnly, "no right": testNoRight, "private": testPrivate,
		"wrong token": testWrongToken, "left alone": testLeftAlone, "away": testAway,
	} {
		run(t, name, test, start)
	}
}

// RunSimulated runs what a real forge cannot be brought to do.
func RunSimulated(t *testing.T, start func(*testing.T) *Site) {
	run(t, "at the same moment", testSameMoment, start)
	run(t, "undocumented", testUndocumented, start)
}

func run(t *testing.T, name string, test func(*Site), start func(*testing.T) *Site) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		s := start(t)
		s.T = t
		s.Forge = s.As(s.Bot.Token)
		test(s)
		s.Git.Fsck()
	})
}

// Simulated is a site on a server of ours.
func Simulated(t *testing.T, w *World, server *Server) *Site {
	return &Site{T: t, Place: w, Cast: w.Cast, URL: server.URL, Front: server, World: w, Server: server}
}

// Everything calls every method with what it may refuse.
func Everything(ctx context.Context, f forge.Forge, number int64, commit string) map[string]error {
	errs := map[string]error{}
	_, errs["login"] = f.Login(ctx)
	_, errs["list"] = f.List(ctx, forge.Filter{})
	_, errs["get"] = f.Get(ctx, number)
	_, errs["open"] = f.Open(ctx, forge.Opening{Title: "t", Head: "second", Base: "main"})
	errs["title"] = f.Update(ctx, number, forge.Change{Title: "t"})
	errs["label"] = f.Update(ctx, number, forge.Change{Label: []string{"new"}})
	errs["comment"] = f.Update(ctx, number, forge.Change{Comment: "c"})
	errs["close"] = f.Update(ctx, number, forge.Change{Close: true})
	_, errs["merge"] = f.Merge(ctx, number, forge.Merge{When: forge.Now, Method: forge.MethodMerge, Commit: commit})
	errs["status"] = f.SetStatus(ctx, commit, forge.Status{Context: "c", State: forge.StatusSuccess})
	_, errs["statuses"] = f.Statuses(ctx, commit)
	return errs
}

var reads = []string{"login", "list", "get", "statuses"}

func isRead(name string) bool { return slices.Contains(reads, name) }
