package gitops

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/mirror"
	"github.com/rampart-gitops/rampart/internal/decisions"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// decided makes a decision about a worker deployment of the namespace shop.
func decided(t *testing.T, name string, at time.Time) decisions.Decision {
	t.Helper()
	masker, err := decisions.NewMasker()
	require.NoError(t, err)
	d, err := decisions.New(decisions.Judged{Now: at, Labels: map[string]string{"id": "bot"},
		Input: json.RawMessage(fmt.Sprintf(`{"now":%q,"deployment":{"namespace":"shop","name":%q},"actions":[{"id":"Ramp/v2@10%%"}]}`,
			at.UTC().Format(time.RFC3339), name)),
		Verdicts: rollout.Verdicts{PolicyDigest: "sha256:1", Spec: rollout.Verdict{Effect: rollout.Allow}}}, masker)
	require.NoError(t, err)
	return d
}

// series are n decisions about a worker deployment, a minute apart.
func series(t *testing.T, name string, from time.Time, n int) []decisions.Decision {
	t.Helper()
	var out []decisions.Decision
	for i := range n {
		out = append(out, decided(t, name, from.Add(time.Duration(i)*time.Minute)))
	}
	return out
}

// keeper is a bot's view of the ref.
type keeper struct {
	*Decisions
	log strings.Builder
	now time.Time
}

func keeperAt(t *testing.T, url, ref string) *keeper {
	t.Helper()
	k := &keeper{now: gittest.Epoch}
	var err error
	k.Decisions, err = OpenDecisions(DecisionsConfig{URL: url, Ref: ref, Dir: t.TempDir(), Author: "rampart", Email: "rampart@example.com",
		Log: slog.New(slog.NewTextHandler(&k.log, nil)), Now: func() time.Time { return k.now }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.Close()) })
	return k
}

// append keeps decisions shortly after the last of them was made.
func (k *keeper) append(t *testing.T, ds []decisions.Decision) []string {
	t.Helper()
	k.now = ds[len(ds)-1].Timestamp.Add(time.Minute)
	commits, err := k.Append(t.Context(), ds)
	require.NoError(t, err)
	return commits
}

func collect(t *testing.T, seq iter.Seq2[decisions.Decision, error]) []decisions.Decision {
	t.Helper()
	var out []decisions.Decision
	for d, err := range seq {
		require.NoError(t, err)
		out = append(out, d)
	}
	return out
}

func ids(ds []decisions.Decision) []string {
	var out []string
	for _, d := range ds {
		out = append(out, d.ID)
	}
	return out
}

func reversed(ds []decisions.Decision) []decisions.Decision {
	out := slices.Clone(ds)
	slices.Reverse(out)
	return out
}

func TestDecisionsAreKept(t *testing.T) {
	ssh := gittest.ServeSSH(t)
	for name, way := range map[string]func(*gittest.Repo) (string, mirror.Auth){
		"file": func(r *gittest.Repo) (string, mirror.Auth) { return r.URL(), mirror.Auth{} },
		"http": func(r *gittest.Repo) (string, mirror.Auth) {
			return gittest.ServeHTTP(t, r, gittest.HTTPConfig{}).URL, mirror.Auth{}
		},
		"ssh": func(r *gittest.Repo) (string, mirror.Auth) {
			return ssh.URL(r), mirror.Auth{SSHKey: mirror.SecretFile(ssh.KeyFile), KnownHosts: ssh.KnownHostsFile}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			main := r.Commit(gittest.Commit{Write: map[string]string{"x": "1"}})
			url, auth := way(r)
			open := func() *Decisions {
				d, err := OpenDecisions(DecisionsConfig{URL: url, Ref: DecisionsRef, Dir: t.TempDir(), Auth: auth, Author: "rampart",
					Email: "rampart@example.com", Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return gittest.Epoch }})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, d.Close()) })
				return d
			}
			one, two := series(t, "checkout", gittest.Epoch, 3), []decisions.Decision{decided(t, "search", gittest.Epoch.Add(time.Hour))}
			bot := open()
			first, err := bot.Append(t.Context(), one)
			require.NoError(t, err)
			second, err := bot.Append(t.Context(), two)
			require.NoError(t, err)

			require.Equal(t, first[0]+"\n"+second[0], r.Git("rev-list", "--reverse", DecisionsRef))
			require.Equal(t, "segment", r.Git("ls-tree", "--name-only", DecisionsRef), "one file each")
			require.Equal(t, "segment", r.Git("ls-tree", "--name-only", first[0]))
			require.Equal(t, main, r.Tip("main"))
			require.Equal(t, "rampart: 3 decisions about shop/checkout", r.Git("log", "-1", "--format=%s", first[0]))
			require.Contains(t, r.Git("log", "-1", "--format=%B", second[0]), "rampart: a decision about shop/search\n\nFrom "+
				two[0].Timestamp.Format(time.RFC3339))
			r.Fsck()

			other := open()
			all := slices.Concat(one, two)
			require.Equal(t, reversed(all), collect(t, other.Read(t.Context(), DecisionQuery{Order: NewestFirst})))
			require.Equal(t, all, collect(t, other.Read(t.Context(), DecisionQuery{Order: OldestFirst})))
			require.Equal(t, two, collect(t, other.Read(t.Context(), DecisionQuery{Order: OldestFirst, Filter: decisions.Filter{Deployment: "shop/search"}})))
		})
	}
}

func TestNoRefIsNoDecisions(t *testing.T) {
	r := gittest.NewBareRepo(t)
	require.Empty(t, collect(t, keeperAt(t, r.URL(), DecisionsRef).Read(t.Context(), DecisionQuery{Order: NewestFirst})), "an empty repository")
	r.Commit(gittest.Commit{Write: map[string]string{"x": "1"}})
	require.Empty(t, collect(t, keeperAt(t, r.URL(), DecisionsRef).Read(t.Context(), DecisionQuery{Order: NewestFirst})))
	_, err := OpenDecisions(DecisionsConfig{URL: r.URL(), Ref: "decisions", Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, `ref "decisions"`)
}

// A bot that was killed after its push, or that does not know what became of it, gives the same decisions again.
func TestKeptOnce(t *testing.T) {
	r := gittest.NewBareRepo(t)
	all := series(t, "checkout", gittest.Epoch, 4)
	require.Len(t, keeperAt(t, r.URL(), DecisionsRef).append(t, all[:2]), 1)
	again := keeperAt(t, r.URL(), DecisionsRef)
	require.Empty(t, again.append(t, all[:2]))
	require.Len(t, again.append(t, all), 1, "the others")
	require.Empty(t, again.append(t, all[1:3]), "in the same run")
	require.Equal(t, ids(all), ids(collect(t, again.Read(t.Context(), DecisionQuery{Order: OldestFirst}))))
}

func TestOutcomeUnknown(t *testing.T) {
	r := gittest.NewBareRepo(t)
	var broken atomic.Bool
	broken.Store(true)
	server := gittest.ServeHTTP(t, r, gittest.HTTPConfig{Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if !broken.Load() || req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "git-receive-pack") {
				next.ServeHTTP(w, req)
				return
			}
			next.ServeHTTP(&unheard{http.Header{}}, req)
			broken.Store(false)
			panic(http.ErrAbortHandler)
		})
	}})
	k := keeperAt(t, server.URL, DecisionsRef)
	ds := series(t, "checkout", gittest.Epoch, 2)
	_, err := k.Append(t.Context(), ds)
	var unknown *mirror.UnknownOutcomeError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, "1", r.Git("rev-list", "--count", DecisionsRef), "it got through")
	k.append(t, slices.Concat(ds, series(t, "search", gittest.Epoch.Add(time.Hour), 1)))
	require.Len(t, collect(t, k.Read(t.Context(), DecisionQuery{Order: NewestFirst})), 3)
}

// unheard is an answer that nobody gets.
type unheard struct{ header http.Header }

func (u *unheard) Header() http.Header         { return u.header }
func (u *unheard) Write(p []byte) (int, error) { return len(p), nil }
func (u *unheard) WriteHeader(int)             {}

func TestTwoBotsLoseNothing(t *testing.T) {
	r := gittest.NewBareRepo(t)
	const bots, each = 3, 5
	var all sync.WaitGroup
	errs := make(chan error, bots*each)
	var want []string
	for i := range bots {
		k := keeperAt(t, r.URL(), DecisionsRef)
		ds := series(t, fmt.Sprint("worker-", i), gittest.Epoch, each)
		want = append(want, ids(ds)...)
		all.Go(func() {
			for j := range ds {
				_, err := k.Append(t.Context(), ds[j:j+1])
				errs <- err
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.ElementsMatch(t, want, ids(collect(t, keeperAt(t, r.URL(), DecisionsRef).Read(t.Context(), DecisionQuery{Order: OldestFirst}))))
	require.Equal(t, fmt.Sprint(bots*each), r.Git("rev-list", "--count", "--first-parent", DecisionsRef))
	require.Empty(t, r.Git("rev-list", "--merges", DecisionsRef))
}

func TestRefThatIsRefused(t *testing.T) {
	r := gittest.NewBareRepo(t)
	main := r.Commit(gittest.Commit{Write: map[string]string{"x": "1"}})
	r.Hook("update", `case $1 in refs/heads/*) ;; *) echo "only branches may be pushed" >&2; exit 1 ;; esac`)
	ds := series(t, "checkout", gittest.Epoch, 2)
	k := keeperAt(t, r.URL(), DecisionsRef)
	_, err := k.Append(t.Context(), ds)
	var not *NotKeptError
	require.ErrorAs(t, err, &not)
	require.True(t, not.Lasting())
	require.ErrorContains(t, err, "only branches may be pushed")
	require.ErrorContains(t, err, "--decision-ref refs/heads/rampart-decisions")
	require.Equal(t, main, r.Tip("main"))

	branch := keeperAt(t, r.URL(), "refs/heads/rampart-decisions")
	branch.append(t, ds[:1])
	r.Hook("update", `exit 1`)
	_, err = branch.Append(t.Context(), ds)
	require.ErrorAs(t, err, &not, "in the middle of a run")
	r.Hook("update", `exit 0`)
	branch.append(t, ds)
	require.Equal(t, ids(ds), ids(collect(t, branch.Read(t.Context(), DecisionQuery{Order: OldestFirst}))))
	require.Equal(t, "2", fmt.Sprint(len(strings.Split(r.Git("for-each-ref"), "\n"))))
}

// What is no log is reported and left as it is, to write and to read.
func TestRefThatHoldsSomethingElse(t *testing.T) {
	ds := series(t, "checkout", gittest.Epoch, 3)
	for name, c := range map[string]struct {
		make func(t *testing.T, r *gittest.Repo)
		want string
	}{
		"other files": {func(_ *testing.T, r *gittest.Repo) {
			r.Commit(gittest.Commit{Branch: "log", Write: map[string]string{"a": "1", "segment": "x"}})
		},
			`it has "a", "segment" where there is one file "segment"`},
		"no files": {func(_ *testing.T, r *gittest.Repo) {
			r.Commit(gittest.Commit{Branch: "log", Write: map[string]string{"a": "1"}})
			r.Commit(gittest.Commit{Branch: "log", Delete: []string{"a"}})
		}, "it has nothing"},
		"no segment": {func(_ *testing.T, r *gittest.Repo) {
			r.Commit(gittest.Commit{Branch: "log", Write: map[string]string{"segment": "\xffx"}})
		}, "unknown version"},
		"a damaged segment": {func(t *testing.T, r *gittest.Repo) {
			keeperAt(t, r.URL(), "refs/heads/log").append(t, ds[:1])
			segment := r.Files("log")["segment"]
			r.Commit(gittest.Commit{Branch: "log", Parent: "none", Write: map[string]string{"segment": segment[:len(segment)-6]}})
		}, "is not of a decision log"},
		"a segment twice": {func(t *testing.T, r *gittest.Repo) {
			k := keeperAt(t, r.URL(), "refs/heads/log")
			k.append(t, ds[:1])
			k.append(t, ds[1:2])
			r.Commit(gittest.Commit{Branch: "log", Write: map[string]string{"segment": r.Files("log")["segment"]}})
		}, decisions.ErrOrder.Error()},
		"a beginning that is missing": {func(t *testing.T, r *gittest.Repo) {
			k := keeperAt(t, r.URL(), "refs/heads/log")
			k.append(t, ds[:1])
			k.append(t, ds[1:2])
			r.Commit(gittest.Commit{Branch: "log", Parent: "none", Write: map[string]string{"segment": r.Files("log")["segment"]}})
		}, "segments before it are missing"},
		"a merge": {func(t *testing.T, r *gittest.Repo) {
			k := keeperAt(t, r.URL(), "refs/heads/log")
			k.append(t, ds[:1])
			k.append(t, ds[1:2])
			merge := r.Git("-c", "user.name=x", "-c", "user.email=x@example.com", "commit-tree", "-m", "x", "-p", "log", "-p", "log~1", "log^{tree}")
			r.Git("update-ref", "refs/heads/log", merge)
		}, "it is a merge"},
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			c.make(t, r)
			before := r.Tip("log")
			k := keeperAt(t, r.URL(), "refs/heads/log")
			_, err := k.Append(t.Context(), ds[2:])
			var not *NotKeptError
			require.ErrorAs(t, err, &not)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, before[:40])
			require.Equal(t, before, r.Tip("log"), "left as it was")
			for _, order := range []DecisionOrder{NewestFirst, OldestFirst} {
				var got error
				for _, err := range k.Read(t.Context(), DecisionQuery{Order: order}) {
					got = err
				}
				require.ErrorAs(t, got, &not)
			}
		})
	}
}

// One decision that cannot be coded keeps no other from the ref.
func TestDecisionThatCannotBeCoded(t *testing.T) {
	r := gittest.NewBareRepo(t)
	k := keeperAt(t, r.URL(), DecisionsRef)
	ds := series(t, "checkout", gittest.Epoch, 5)
	k.append(t, ds[:1])
	deep := decided(t, "deep", ds[3].Timestamp)
	deep.Input = json.RawMessage(`{"deployment":{"namespace":"shop","name":"deep"},"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`)
	k.append(t, slices.Concat(ds[:3], []decisions.Decision{deep}, ds[3:]))
	require.Equal(t, ids(ds), ids(collect(t, k.Read(t.Context(), DecisionQuery{Order: OldestFirst}))))
	require.Contains(t, k.log.String(), deep.ID)
}

// A ref that somebody else rewrote is built on as it is now.
func TestRefThatWasRewritten(t *testing.T) {
	r := gittest.NewBareRepo(t)
	ds := series(t, "checkout", gittest.Epoch, 3)
	k := keeperAt(t, r.URL(), DecisionsRef)
	first := k.append(t, ds[:1])
	k.append(t, ds[1:2])
	r.Git("update-ref", DecisionsRef, first[0])
	k.append(t, ds[2:])
	require.Contains(t, k.log.String(), "was rewritten")
	require.Equal(t, ids([]decisions.Decision{ds[0], ds[2]}), ids(collect(t, k.Read(t.Context(), DecisionQuery{Order: OldestFirst}))))
}

// months are decisions in three months, of which the first month's cannot be read.
func months(t *testing.T) (*gittest.Repo, [][]decisions.Decision) {
	t.Helper()
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Branch: "log", Write: map[string]string{"segment": "damaged"}, When: gittest.Epoch})
	// Its first epoch can only begin where the one before can be read: it begins as a history of its own, and is put on top.
	k := keeperAt(t, r.URL(), "refs/heads/apart")
	var out [][]decisions.Decision
	for m := range 2 {
		ds := series(t, "checkout", gittest.Epoch.AddDate(0, m+1, 0), 2)
		for i := range ds {
			k.append(t, ds[i:i+1])
		}
		out = append(out, ds)
	}
	for _, c := range strings.Fields(r.Git("rev-list", "--reverse", "apart")) {
		var unix int64
		_, err := fmt.Sscan(r.Git("log", "-1", "--format=%ct", c), &unix)
		require.NoError(t, err)
		r.Commit(gittest.Commit{Branch: "log", Write: map[string]string{"segment": r.Files(c)["segment"]}, When: time.Unix(unix, 0)})
	}
	return r, out
}

// Reading goes back no further than it has to.
func TestReadingGoesBackByEpochs(t *testing.T) {
	r, all := months(t)
	k := keeperAt(t, r.URL(), "refs/heads/log")
	since := func(at time.Time, order DecisionOrder) DecisionQuery {
		return DecisionQuery{Filter: decisions.Filter{Since: at}, Order: order}
	}
	for _, order := range []DecisionOrder{NewestFirst, OldestFirst} {
		want := slices.Concat(all[0], all[1])
		if order == NewestFirst {
			want = reversed(want)
		}
		require.Equal(t, want, collect(t, k.Read(t.Context(), since(all[0][0].Timestamp, order))))
	}
	require.Equal(t, all[1], collect(t, k.Read(t.Context(), since(all[1][0].Timestamp, OldestFirst))))
	require.Equal(t, all[0][1:], collect(t, k.Read(t.Context(), since(all[0][1].Timestamp, OldestFirst)))[:1], "in the middle of an epoch")

	var got []decisions.Decision
	var last error
	for d, err := range k.Read(t.Context(), DecisionQuery{Order: NewestFirst}) {
		if last = err; err == nil {
			got = append(got, d)
		}
		if len(got) == 4 && err == nil {
			break
		}
	}
	require.NoError(t, last, "who stops early does not see the damage")
	require.Equal(t, reversed(slices.Concat(all[0], all[1])), got)
	for _, err := range k.Read(t.Context(), DecisionQuery{Order: NewestFirst}) {
		last = err
	}
	var not *NotKeptError
	require.True(t, errors.As(last, &not), "who goes on does")
}

// An epoch is a month: decisions of two months are two commits, of which the second needs no other.
func TestMonthsAreEpochs(t *testing.T) {
	r := gittest.NewBareRepo(t)
	k := keeperAt(t, r.URL(), DecisionsRef)
	ds := slices.Concat(series(t, "checkout", gittest.Epoch, 2), series(t, "checkout", gittest.Epoch.AddDate(0, 1, 0), 2))
	commits := k.append(t, ds)
	require.Len(t, commits, 2)
	for i, c := range commits {
		header, err := decisions.ReadHeader([]byte(r.Files(c)["segment"]))
		require.NoError(t, err)
		require.Equal(t, 0, header.Sequence)
		require.Equal(t, ds[2*i].Timestamp, header.First)
	}
	require.Equal(t, ds, collect(t, k.Read(t.Context(), DecisionQuery{Order: OldestFirst})))
}

// A commit's message costs little beside what the commit holds.
func TestDecisionsMessage(t *testing.T) {
	few := slices.Concat(series(t, "checkout", gittest.Epoch, 2), series(t, "cart", gittest.Epoch, 1))
	require.Equal(t, "rampart: 3 decisions about 2 worker deployments\n\nFrom 2026-01-02T03:04:05Z to 2026-01-02T03:05:05Z\n\nshop/cart: 1\nshop/checkout: 2\n",
		decisionsMessage(few))
	var many []decisions.Decision
	for i := range 100 {
		many = append(many, series(t, fmt.Sprintf("worker-%d", i), gittest.Epoch, 1)...)
	}
	message := decisionsMessage(many)
	require.Contains(t, message, "rampart: 100 decisions about 100 worker deployments\n\nFrom ")
	require.Less(t, len(message), 120)
}
