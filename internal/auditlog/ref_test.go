package auditlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

var allowed = rollout.Verdicts{PolicyDigest: "sha256:1", Spec: rollout.Verdict{Effect: rollout.Allow},
	Actions: map[string]rollout.Verdict{"Ramp/v2@10%": {Effect: rollout.Allow}}}

// decided makes a decision about a worker deployment of the namespace shop.
func decided(t testing.TB, name string, at time.Time) auditlog.Decision {
	t.Helper()
	d, err := auditlog.NewDecision(auditlog.Judged{Now: at, Labels: map[string]string{"id": "bot"},
		Input: json.RawMessage(fmt.Sprintf(`{"now":%q,"environment":{"name":"prod"},
			"deployment":{"namespace":"shop","name":%q},"actions":[{"id":"Ramp/v2@10%%"}],"text":%q}`,
			at.UTC().Format(time.RFC3339), name, strings.Repeat("text ", 50))),
		Verdicts: allowed}, masker(t))
	require.NoError(t, err)
	return d
}

// series are n decisions about a worker deployment, a minute apart.
func series(t testing.TB, name string, from time.Time, n int) []auditlog.Decision {
	t.Helper()
	var out []auditlog.Decision
	for i := range n {
		out = append(out, decided(t, name, from.Add(time.Duration(i)*time.Minute)))
	}
	return out
}

// keeper is a bot's view of the refs.
type keeper struct {
	*auditlog.Ref
	log strings.Builder
	now time.Time
}

func keeperAt(t testing.TB, url, name string) *keeper {
	t.Helper()
	return keeperWith(t, gitops.ArchiveConfig{URL: url, Ref: name})
}

func keeperWith(t testing.TB, cfg gitops.ArchiveConfig) *keeper {
	t.Helper()
	k := &keeper{now: gittest.Epoch}
	cfg.Dir, cfg.Author, cfg.Email = t.TempDir(), "rampart", "rampart@example.com"
	cfg.Log, cfg.Now = slog.New(slog.NewTextHandler(&k.log, nil)), func() time.Time { return k.now }
	archive, err := gitops.OpenArchive(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, archive.Close()) })
	k.Ref = auditlog.NewRef(archive, auditlog.RefConfig{Name: cfg.Ref, Retention: 40 * 24 * time.Hour,
		Log: cfg.Log, Now: cfg.Now})
	return k
}

// append keeps decisions shortly after the last of them was made.
func (k *keeper) append(t testing.TB, ds []auditlog.Decision) {
	t.Helper()
	k.now = ds[len(ds)-1].Timestamp.Add(time.Minute)
	require.NoError(t, k.Append(t.Context(), ds))
}

func (k *keeper) all(t testing.TB) []auditlog.Decision {
	t.Helper()
	return collect(t, k.Read(t.Context(), auditlog.Query{}))
}

func collect(t require.TestingT, seq iter.Seq2[auditlog.Decision, error]) []auditlog.Decision {
	var out []auditlog.Decision
	for d, err := range seq {
		require.NoError(t, err)
		out = append(out, d)
	}
	return out
}

func reversed(ds []auditlog.Decision) []auditlog.Decision {
	out := slices.Clone(ds)
	slices.Reverse(out)
	return out
}

// january is the month of gittest.Epoch.
const january = auditlog.DefaultRef + "/2026-01"

// files are the names of a ref's files.
func files(r *gittest.Repo, ref string) []string {
	return strings.Fields(r.Git("ls-tree", "--name-only", ref))
}

func TestDecisionsAreKept(t *testing.T) {
	ssh := gittest.ServeSSH(t)
	for name, way := range map[string]func(*gittest.Repo) (string, git.Auth){
		"file": func(r *gittest.Repo) (string, git.Auth) { return r.URL(), git.Auth{} },
		"http": func(r *gittest.Repo) (string, git.Auth) {
			r.Git("config", "uploadpack.allowFilter", "true")
			return gittest.ServeHTTP(t, r, gittest.HTTPConfig{}).URL, git.Auth{}
		},
		"ssh": func(r *gittest.Repo) (string, git.Auth) {
			return ssh.URL(r), git.Auth{SSHKey: git.SecretFile(ssh.KeyFile), KnownHosts: ssh.KnownHostsFile}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			r.Git("config", "receive.denyNonFastForwards", "true") // which is about branches
			main := r.Commit(gittest.Commit{Write: map[string]string{"x": "1"}})
			cfg := gitops.ArchiveConfig{Ref: auditlog.DefaultRef}
			cfg.URL, cfg.Auth = way(r)
			one, two := series(t, "checkout", gittest.Epoch, 3), series(t, "search", gittest.Epoch.Add(time.Hour), 1)
			bot := keeperWith(t, cfg)
			bot.append(t, one)
			bot.append(t, two)
			require.Equal(t, []string{"000001-20260102T030405Z-20260102T030605Z.open.jsonl.zst",
				"000002-20260102T040405Z-20260102T040405Z.open.jsonl.zst"}, files(r, january))
			require.Equal(t, "1", r.Git("rev-list", "--count", january), "no history")
			require.Equal(t, "rampart: 1 decision about 1 worker deployment", r.Git("log", "-1", "--format=%s", january))
			require.Equal(t, main, r.Tip("main"))
			r.Fsck()

			other := keeperWith(t, cfg)
			all := slices.Concat(one, two)
			require.Equal(t, all, other.all(t))
			require.Equal(t, reversed(all), collect(t, other.Read(t.Context(), auditlog.Query{NewestFirst: true})))
			require.Equal(t, []auditlog.Decision{two[0], one[2]},
				collect(t, other.Read(t.Context(), auditlog.Query{NewestFirst: true, LatestOnly: true})))
			q := auditlog.Filter{Deployment: "shop/checkout", Since: one[1].Timestamp}
			require.Equal(t, one[1:], collect(t, other.Read(t.Context(), auditlog.Query{Filter: q})))
			other.append(t, series(t, "cart", gittest.Epoch.Add(2*time.Hour), 1))
			require.Len(t, bot.all(t), 5)
		})
	}
}

func TestNoRefIsNoDecisions(t *testing.T) {
	r := gittest.NewBareRepo(t)
	require.Empty(t, keeperAt(t, r.URL(), auditlog.DefaultRef).all(t), "an empty repository")
	r.Commit(gittest.Commit{Write: map[string]string{"x": "1"}})
	require.Empty(t, keeperAt(t, r.URL(), auditlog.DefaultRef).all(t))
	_, err := gitops.OpenArchive(gitops.ArchiveConfig{URL: r.URL(), Ref: "decisions"})
	require.ErrorContains(t, err, `ref "decisions"`)
}

// A bot that was killed after its push, or that does not know what became of it, gives the same decisions again.
func TestKeptOnce(t *testing.T) {
	r := gittest.NewBareRepo(t)
	all := series(t, "checkout", gittest.Epoch, 4)
	keeperAt(t, r.URL(), auditlog.DefaultRef).append(t, all[:2])
	tip := r.Git("rev-parse", january)
	again := keeperAt(t, r.URL(), auditlog.DefaultRef)
	again.append(t, all[:2])
	require.Equal(t, tip, r.Git("rev-parse", january))
	again.append(t, all)
	require.Equal(t, ids(all), ids(again.all(t)))
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
	k := keeperAt(t, server.URL, auditlog.DefaultRef)
	ds := series(t, "checkout", gittest.Epoch, 2)
	var unknown *git.UnknownOutcomeError
	require.ErrorAs(t, k.Append(t.Context(), ds), &unknown)
	require.Len(t, files(r, january), 1, "it got through")
	k.append(t, slices.Concat(ds, series(t, "search", gittest.Epoch.Add(time.Hour), 1)))
	require.Len(t, k.all(t), 3)
}

// unheard is an answer that is dropped: no client gets it.
type unheard struct{ header http.Header }

func (u *unheard) Header() http.Header         { return u.header }
func (u *unheard) Write(p []byte) (int, error) { return len(p), nil }
func (u *unheard) WriteHeader(int)             {}

// Bots that write at once lose nothing, while small segments are merged too.
func TestTwoBotsLoseNothing(t *testing.T) {
	r := gittest.NewBareRepo(t)
	const bots, each = 3, 8
	var all sync.WaitGroup
	errs := make(chan error, bots*each)
	var want []string
	for i := range bots {
		k := keeperAt(t, r.URL(), auditlog.DefaultRef)
		ds := series(t, fmt.Sprint("worker-", i), gittest.Epoch, each)
		want = append(want, ids(ds)...)
		all.Go(func() {
			for j := range ds {
				errs <- k.Append(t.Context(), ds[j:j+1])
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.ElementsMatch(t, want, ids(keeperAt(t, r.URL(), auditlog.DefaultRef).all(t)))
	require.Less(t, len(files(r, january)), bots*each)
}

// The sixteenth small segment is merged with the others.
func TestSmallSegmentsAreMerged(t *testing.T) {
	r := gittest.NewBareRepo(t)
	k := keeperAt(t, r.URL(), auditlog.DefaultRef)
	ds := series(t, "checkout", gittest.Epoch, 17)
	for i := range 15 {
		k.append(t, ds[i:i+1])
	}
	require.Len(t, files(r, january), 15)
	k.append(t, ds[15:16])
	require.Equal(t, []string{"000016-20260102T030405Z-20260102T031905Z.open.jsonl.zst"}, files(r, january))
	k.append(t, ds[16:])
	require.Len(t, files(r, january), 2)
	require.Equal(t, ds, k.all(t))
}

// Small segments that are merged are closed when that makes a large one.
func TestFullSegmentsStay(t *testing.T) {
	testneed.Plain(t)
	r := gittest.NewBareRepo(t)
	k := keeperAt(t, r.URL(), auditlog.DefaultRef)
	var many []auditlog.Decision
	for i := range 15_000 {
		at := gittest.Epoch.Add(time.Hour + time.Duration(i)*time.Second)
		many = append(many, decided(t, fmt.Sprint("worker-", i%50), at))
	}
	for part := range slices.Chunk(many, 950) {
		k.append(t, part)
	}
	open := 0
	for _, name := range files(r, january) {
		if strings.Contains(name, ".open.") {
			open++
		}
	}
	require.Equal(t, 1, len(files(r, january))-open, "%v", files(r, january))
	require.Equal(t, ids(many), ids(k.all(t)))
}

func TestRefThatIsRefused(t *testing.T) {
	r := gittest.NewBareRepo(t)
	main := r.Commit(gittest.Commit{Write: map[string]string{"x": "1"}})
	r.Hook("update", `case $1 in refs/heads/*) ;; *) echo "only branches may be pushed" >&2; exit 1 ;; esac`)
	ds := series(t, "checkout", gittest.Epoch, 2)
	k := keeperAt(t, r.URL(), auditlog.DefaultRef)
	err := k.Append(t.Context(), ds)
	var not *auditlog.NotKeptError
	require.ErrorAs(t, err, &not)
	require.True(t, not.Lasting())
	require.ErrorContains(t, err, "only branches may be pushed")
	require.ErrorContains(t, err, "--decision-ref refs/heads/rampart-decisions")
	require.Equal(t, main, r.Tip("main"))

	branch := keeperAt(t, r.URL(), "refs/heads/rampart-decisions")
	branch.append(t, ds[:1])
	r.Hook("update", `exit 1`)
	require.ErrorAs(t, branch.Append(t.Context(), ds), &not, "in the middle of a run")
	r.Hook("update", `exit 0`)
	branch.append(t, ds)
	require.Equal(t, ids(ds), ids(branch.all(t)))
	require.Len(t, strings.Split(r.Git("for-each-ref"), "\n"), 2)
}

// Files that are not a log are reported and left as they are, to write and to read.
func TestRefThatHoldsSomethingElse(t *testing.T) {
	ds := series(t, "checkout", gittest.Epoch, 3)
	const name = "000001-20260102T030405Z-20260102T030405Z.open.jsonl.zst"
	segment := func(t *testing.T) string {
		r := gittest.NewBareRepo(t)
		keeperAt(t, r.URL(), "refs/heads/log").append(t, ds[:1])
		return r.Files("log/2026-01")[name]
	}
	for what, c := range map[string]struct {
		files func(t *testing.T) map[string]string
		want  string
	}{
		"other files": {func(*testing.T) map[string]string {
			return map[string]string{"a": "1"}
		}, `"a" is not the name of a segment`},
		"a folder": {func(*testing.T) map[string]string {
			return map[string]string{name + "/a": "1"}
		}, "is not a regular file"},
		"not a segment": {func(*testing.T) map[string]string {
			return map[string]string{name: "\xffx"}
		}, "decompress it"},
		"a damaged segment": {func(t *testing.T) map[string]string {
			s := segment(t)
			return map[string]string{name: s[:len(s)-6] + "damage"}
		}, "decompress it"},
		"other lines": {func(t *testing.T) map[string]string {
			return map[string]string{name: string(compress(t, `{"a": 1}`))}
		}, `line 1: want "about" as its first field`},
		"not JSON": {func(t *testing.T) map[string]string {
			return map[string]string{name: string(compress(t, `{"about":"prod/shop/cart",`))}
		}, "line 1: it is not JSON"},
		"a patch of nothing": {func(t *testing.T) map[string]string {
			return map[string]string{name: string(compress(t, `{"about":"prod/shop/cart","patch":true}`))}
		}, `line 1: it is a patch, and the line before it is not about "prod/shop/cart"`},
	} {
		t.Run(what, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			before := r.Commit(gittest.Commit{Branch: "log/2026-01", Write: c.files(t)})
			k := keeperAt(t, r.URL(), "refs/heads/log")
			err := k.Append(t.Context(), ds[:1])
			var not *auditlog.NotKeptError
			require.ErrorAs(t, err, &not)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "refs/heads/log/2026-01")
			require.Equal(t, before, r.Tip("log/2026-01"), "left as it was")
			for _, newest := range []bool{true, false} {
				var got error
				for _, err := range k.Read(t.Context(), auditlog.Query{NewestFirst: newest}) {
					got = err
				}
				require.ErrorAs(t, got, &not)
			}
		})
	}
}

// A decision that is too large keeps no other from the ref.
func TestDecisionThatIsTooLarge(t *testing.T) {
	r := gittest.NewBareRepo(t)
	k := keeperAt(t, r.URL(), auditlog.DefaultRef)
	ds := series(t, "checkout", gittest.Epoch, 5)
	large := decided(t, "large", ds[3].Timestamp)
	large.Input = json.RawMessage(`{"deployment":{"namespace":"shop","name":"large"},"x":"` +
		strings.Repeat("x", 8<<20) + `"}`)
	k.append(t, slices.Concat(ds[:3], []auditlog.Decision{large}, ds[3:]))
	require.Equal(t, ids(ds), ids(k.all(t)))
	require.Contains(t, k.log.String(), large.ID)
}

// A month's ref that somebody else rewrote is built on as it is now.
func TestRefThatWasRewritten(t *testing.T) {
	r := gittest.NewBareRepo(t)
	ds := series(t, "checkout", gittest.Epoch, 3)
	k := keeperAt(t, r.URL(), auditlog.DefaultRef)
	k.append(t, ds[:1])
	first := r.Git("rev-parse", january)
	k.append(t, ds[1:2])
	r.Git("update-ref", january, first)
	k.append(t, ds[2:])
	require.Equal(t, ids([]auditlog.Decision{ds[0], ds[2]}), ids(k.all(t)))
}

// Reading goes back no further than it has to, over months and within one.
func TestReadingGoesBackOnlyAsFarAsIsWanted(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Branch: "log/2026-01", Write: map[string]string{"damaged": "damaged"}})
	k := keeperAt(t, r.URL(), "refs/heads/log")
	var all []auditlog.Decision
	for m := range 2 {
		for _, d := range series(t, "checkout", gittest.Epoch.AddDate(0, m+1, 0), 2) {
			k.append(t, []auditlog.Decision{d})
			all = append(all, d)
		}
	}
	require.Len(t, files(r, "log/2026-03"), 2)
	since := auditlog.Query{Filter: auditlog.Filter{Since: all[1].Timestamp}}
	require.Equal(t, all[1:], collect(t, k.Read(t.Context(), since)))
	since.NewestFirst = true
	require.Equal(t, reversed(all[1:]), collect(t, k.Read(t.Context(), since)))
	n := 0
	for _, err := range k.Read(t.Context(), auditlog.Query{NewestFirst: true}) {
		require.NoError(t, err, "who stops early does not see the damage")
		if n++; n == 4 {
			break
		}
	}
	var last error
	for _, err := range k.Read(t.Context(), auditlog.Query{NewestFirst: true}) {
		last = err
	}
	var not *auditlog.NotKeptError
	require.ErrorAs(t, last, &not, "who goes on does")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range k.Read(ended, since) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

// A clone has the refs once they were fetched: in a work tree, in another one beside it, and in a bare repository.
func TestDecisionsOfAClone(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"x": "1"}})
	ds := series(t, "checkout", gittest.Epoch, 3)
	keeperAt(t, r.URL(), auditlog.DefaultRef).append(t, ds)
	work, beside := filepath.Join(t.TempDir(), "clone"), filepath.Join(t.TempDir(), "beside")
	r.Git("clone", "--quiet", r.URL(), work)
	read := func(dir string) iter.Seq2[auditlog.Decision, error] {
		c, err := gitops.OpenClone(dir)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		return auditlog.Read(t.Context(), c.Archive(auditlog.DefaultRef), auditlog.DefaultRef, auditlog.Query{})
	}
	var missing *gitops.NoRefError
	for _, err := range read(work) {
		require.ErrorAs(t, err, &missing)
		require.ErrorContains(t, err, "fetch origin '+refs/rampart/decisions/*:refs/rampart/decisions/*'")
	}
	require.NotNil(t, missing)
	inWork := []string{"-C", work, "--git-dir", filepath.Join(work, ".git")}
	r.Git(append(inWork, "fetch", "--quiet", "origin", "+refs/rampart/decisions/*:refs/rampart/decisions/*")...)
	r.Git(append(inWork, "worktree", "add", "--quiet", "--detach", beside)...)
	for _, dir := range []string{work, beside, r.Dir} {
		require.Equal(t, ds, collect(t, read(dir)))
	}
}

// The refs of months that are wholly older than decisions are kept are deleted, and no others.
func TestRetention(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Git("config", "receive.denyDeletes", "true") // which is about branches
	k := keeperAt(t, r.URL(), auditlog.DefaultRef)
	k.append(t, series(t, "checkout", gittest.Epoch, 1)) // it keeps 40 days
	r.Git("update-ref", auditlog.DefaultRef+"/notes", january)
	refs := func() string { return r.Git("for-each-ref", "--format=%(refname:lstrip=3)") }
	k.append(t, series(t, "checkout", time.Date(2026, 3, 12, 23, 58, 0, 0, time.UTC), 1))
	require.Equal(t, "2026-01\n2026-03\nnotes", refs(), "its last day is 40 days ago and less")
	k.append(t, series(t, "checkout", time.Date(2026, 3, 13, 0, 0, 0, 0, time.UTC), 1))
	require.Equal(t, "2026-03\nnotes", refs())
}

// compress makes a segment of text as anybody may.
func compress(t *testing.T, text string) []byte {
	t.Helper()
	cmd := exec.Command("zstd", "-c")
	cmd.Stdin = strings.NewReader(text)
	return output(t, cmd)
}

func output(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	for _, name := range []string{"zstd", "jq"} {
		if _, err := exec.LookPath(name); err != nil {
			testneed.Missing(t, name+" is needed and not installed (Debian: apt-get install jq zstd)")
		}
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(t, err, said.String())
	return out
}

// documented is the command in docs/decision-log.md that prints each decision of a month in full, for another month.
func documented(t *testing.T, ref string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/decision-log.md")
	require.NoError(t, err)
	command := regexp.MustCompile("(?s)```sh\n(ref=.*?)```").FindSubmatch(page)
	require.NotNil(t, command, "the page has no command that begins with ref=")
	return regexp.MustCompile(`refs/rampart/decisions/\S+`).ReplaceAllLiteralString(string(command[1]), ref)
}

// Segments are read with git, zstd and jq alone.
func TestSegmentsAreReadWithStandardTools(t *testing.T) {
	r := gittest.NewBareRepo(t)
	k := keeperAt(t, r.URL(), auditlog.DefaultRef)
	ds := slices.Concat(series(t, "checkout", gittest.Epoch, 3), series(t, "search", gittest.Epoch.Add(time.Hour), 2))
	for i := range ds { // something appears, changes and goes
		var err error
		ds[i], err = auditlog.NewDecision(auditlog.Judged{Now: ds[i].Timestamp, Input: ds[i].Input, Verdicts: allowed,
			Labels: ds[i].Labels, Bundles: map[string]auditlog.Bundle{fmt.Sprint("org", i%2): {Revision: "1"}}}, masker(t))
		require.NoError(t, err)
	}
	k.append(t, ds)
	blob := output(t, exec.Command("git", "-C", r.Dir, "cat-file", "blob", january+":"+files(r, january)[0]))
	unzip := exec.Command("zstd", "-dc")
	unzip.Stdin = bytes.NewReader(blob)
	lines := output(t, unzip)
	require.Equal(t, 3, bytes.Count(lines, []byte(`"patch":true`)), "all but the first of each:\n%s", lines)

	shell := exec.Command("sh", "-e", "-c", documented(t, january))
	shell.Dir = r.Dir
	got := collect(t, auditlog.ReadLines(t.Context(), bytes.NewReader(output(t, shell))))
	require.Len(t, got, len(ds))
	for i := range ds {
		require.JSONEq(t, string(ds[i].Input), string(got[i].Input))
		require.JSONEq(t, string(ds[i].Result), string(got[i].Result))
		require.Equal(t, ds[i].Bundles, got[i].Bundles)
	}
	got = collect(t, auditlog.ReadLines(t.Context(), bytes.NewReader(lines)))
	require.Equal(t, ds, got, "commands that take lines take these too")
}
