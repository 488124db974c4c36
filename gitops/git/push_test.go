package git

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

func TestPushIsRefusedWhenSomeoneElsePushed(t *testing.T) {
	onEveryWay(t, func(t *testing.T, r *gittest.Repo, w way) {
		r.Commit(gittest.Commit{Write: first})
		m := openMirror(t, w)
		tip := fetch(t, m, "main")
		s := stage(t, m, commitOn(tip, put("ours", "1")))
		theirs := r.Commit(gittest.Commit{Write: map[string]string{"theirs": "1"}})

		_, err := m.Push(t.Context(), s)
		var moved *MovedError
		require.ErrorAs(t, err, &moved)
		requireSame(t, &MovedError{Branch: "main", Expected: tip.Commit, Actual: plumbing.NewHash(theirs)}, moved)
		require.Equal(t, theirs, r.Tip("main"), "nothing lost")

		tip = fetch(t, m, "main")
		require.Equal(t, "forward", moveOf(tip))
		_, err = m.Push(t.Context(), stage(t, m, commitOn(tip, put("ours", "1"))))
		require.NoError(t, err)
		files := r.Files("main")
		require.Equal(t, "1", files["ours"])
		require.Equal(t, "1", files["theirs"])
	})
}

// The other writer is quicker after we have seen the advertisement: only the report says so.
func TestRaceLostAfterTheAdvertisement(t *testing.T) {
	onEveryWay(t, func(t *testing.T, r *gittest.Repo, w way) {
		r.Commit(gittest.Commit{Write: first})
		theirs := r.Commit(gittest.Commit{Branch: "other", Parent: "main", Write: map[string]string{"theirs": "1"}})
		m := openMirror(t, w)
		tip := fetch(t, m, "main")
		// The quarantine forbids updates from within, so git is told that there is none.
		r.Hook("pre-receive", `unset GIT_QUARANTINE_PATH; git update-ref refs/heads/main `+theirs)
		_, err := m.Push(soon(t), stage(t, m, commitOn(tip, put("ours", "1"))))
		var moved *MovedError
		require.ErrorAs(t, err, &moved)
		requireSame(t, &MovedError{Branch: "main", Expected: tip.Commit, Actual: plumbing.NewHash(theirs)}, moved)
		require.Equal(t, theirs, r.Tip("main"))
		require.Equal(t, "forward", moveOf(fetch(t, m, "main")))
	})
}

func TestManyWritersLoseNothing(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	const writers, each = 4, 5
	var all sync.WaitGroup
	errs := make(chan error, writers*each)
	for i := range writers {
		m := openFile(t, r)
		all.Go(func() {
			for j := range each {
				errs <- pushUntilDone(t.Context(), m, put("w/"+string(rune('a'+i))+string(rune('0'+j)), "x"))
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, r.Files("main"), len(first)+writers*each)
	require.Equal(t, "21", r.Git("rev-list", "--count", "--first-parent", "main"))
	r.Fsck()
}

func pushUntilDone(ctx context.Context, m *Mirror, c Change) error {
	for {
		tip, err := m.Fetch(ctx, "main")
		if err != nil {
			return err
		}
		s, err := m.Stage(commitOn(tip, c))
		if err != nil {
			return err
		}
		_, err = m.Push(ctx, s)
		var moved *MovedError
		if !errors.As(err, &moved) {
			return err
		}
	}
}

func TestHookRejects(t *testing.T) {
	onEveryWay(t, func(t *testing.T, r *gittest.Repo, w way) {
		r.Commit(gittest.Commit{Write: first})
		r.Hook("update", `printf 'main is protected\033[31m, ask ops\n' >&2; exit 1`)
		m := openMirror(t, w)
		tip := fetch(t, m, "main")
		_, err := m.Push(soon(t), stage(t, m, commitOn(tip, put("ours", "1"))))
		var rejected *RejectedError
		require.ErrorAs(t, err, &rejected)
		require.Equal(t, "main", rejected.Branch)
		require.Contains(t, rejected.Reason, "hook declined")
		require.Equal(t, `main is protected\u001b[31m, ask ops error: hook declined to update refs/heads/main`, rejected.Output)
		require.NotContains(t, err.Error(), "s3cret")
		require.Equal(t, tip.Commit.String(), r.Tip("main"))
		require.Equal(t, "none", moveOf(fetch(t, m, "main")))
	})
}

func TestEmptyChange(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	m := openFile(t, r)
	tip := fetch(t, m, "main")
	for name, changes := range map[string][]Change{
		"none": nil, "same content": {put("README.md", "hello\n")}, "delete what is not there": {del("no/such/file")},
	} {
		s := stage(t, m, commitOn(tip, changes...))
		requireSame(t, &Staged{Branch: "main", Expected: tip.Commit, Tree: tip.Tree}, s)
		require.True(t, s.Unchanged(), name)
		_, err := m.Push(t.Context(), s)
		require.ErrorIs(t, err, ErrNothingStaged)
	}
}

func TestTwoThousandFiles(t *testing.T) {
	r := gittest.NewBareRepo(t)
	files := manyFiles(250)
	r.Commit(gittest.Commit{Write: files})
	m := openMirror(t, way{url: gittest.ServeHTTP(t, r, gittest.HTTPConfig{}).URL})
	tip := fetch(t, m, "main")
	var changes []Change
	for path, data := range files {
		changes = append(changes, put(path, data+"changed\n"), put(path+".new", data))
	}
	require.Len(t, changes, 2000)
	s := stage(t, m, commitOn(tip, changes...))
	_, err := m.Push(t.Context(), s)
	require.NoError(t, err)
	r.Fsck()
	want := map[string]string{}
	for path, data := range files {
		want[path], want[path+".new"] = data+"changed\n", data
	}
	requireSame(t, want, r.Files("main"))
	requireSame(t, want, readAll(t, m, s.Tree))
}

// cutOff forwards a push to git and then drops the connection instead of the answer.
func cutOff(after chan<- struct{}) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "git-receive-pack") {
				next.ServeHTTP(w, req)
				return
			}
			next.ServeHTTP(&devNull{header: http.Header{}}, req)
			close(after)
			panic(http.ErrAbortHandler)
		})
	}
}

type devNull struct{ header http.Header }

func (d *devNull) Header() http.Header         { return d.header }
func (d *devNull) Write(p []byte) (int, error) { return len(p), nil }
func (d *devNull) WriteHeader(int)             {}

func TestOutcomeUnknownWhenTheConnectionBreaks(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	done := make(chan struct{})
	m := openMirror(t, way{url: gittest.ServeHTTP(t, r, gittest.HTTPConfig{Wrap: cutOff(done)}).URL})
	tip := fetch(t, m, "main")
	s := stage(t, m, commitOn(tip, put("ours", "1")))
	_, err := m.Push(soon(t), s)
	var unknown *UnknownOutcomeError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, s.Commit, unknown.Commit)
	var access *AccessError
	require.False(t, errors.As(err, &access), "an access error would say that nothing was sent")
	<-done
	require.Equal(t, s.Commit, fetch(t, m, "main").Commit, "it got through")

	again, err := m.Push(soon(t), s) // and trying again does no harm
	require.NoError(t, err)
	require.Equal(t, s.Commit, again)
}

func TestServerKilledInMidPush(t *testing.T) {
	for _, name := range []string{"file", "ssh"} {
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: first})
			w := ways(t, r)[map[string]int{"file": 0, "ssh": 4}[name]]
			m := openMirror(t, w)
			tip := fetch(t, m, "main")
			r.Hook("pre-receive", `kill -9 $PPID`)
			_, err := m.Push(soon(t), stage(t, m, commitOn(tip, put("ours", "1"))))
			var unknown *UnknownOutcomeError
			require.ErrorAs(t, err, &unknown)
			require.Equal(t, tip.Commit, fetch(t, m, "main").Commit)
		})
	}
}

func TestInterruptedPush(t *testing.T) {
	onEveryWay(t, func(t *testing.T, r *gittest.Repo, w way) {
		r.Commit(gittest.Commit{Write: first})
		m := openMirror(t, w)
		tip := fetch(t, m, "main")
		dir := t.TempDir()
		started, release := filepath.Join(dir, "started"), filepath.Join(dir, "release")
		r.Hook("pre-receive", `echo > `+started+`; while [ -e `+started+` ] && [ ! -e `+release+` ]; do sleep 0.02; done; exit 1`)
		t.Cleanup(func() { overwrite(t, release, "") }) // the servers wait for what they started
		ctx, cancel := context.WithCancel(soon(t))
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			for ; ctx.Err() == nil; <-time.After(5 * time.Millisecond) {
				if _, err := os.Stat(started); err == nil {
					cancel()
				}
			}
		}()
		start := time.Now()
		_, err := m.Push(ctx, stage(t, m, commitOn(tip, put("ours", "1"))))
		<-stop
		require.Less(t, time.Since(start), 10*time.Second)
		var unknown *UnknownOutcomeError
		require.ErrorAs(t, err, &unknown)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, tip.Commit, fetch(t, m, "main").Commit)
	})
}

func TestStagedRequestsThatAreWrong(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	m := openFile(t, r)
	tip := fetch(t, m, "main")
	with := func(change func(*CommitRequest)) CommitRequest {
		req := commitOn(tip, put("x", "y"))
		change(&req)
		return req
	}
	for want, req := range map[string]CommitRequest{
		"invalid reference name":         with(func(r *CommitRequest) { r.Branch = "a..b" }),
		"commit message is empty":        with(func(r *CommitRequest) { r.Message = " \n" }),
		"commit author has no name":      with(func(r *CommitRequest) { r.Author.Name = "<>" }),
		"commit committer has no e-mail": with(func(r *CommitRequest) { r.Committer.Email = "" }),
		"commit author has no time":      with(func(r *CommitRequest) { r.Author.When = time.Time{} }),
		"is not the parent's":            with(func(r *CommitRequest) { r.BaseTree = emptyTree }),
		"is not in the mirror":           with(func(r *CommitRequest) { r.Parent = plumbing.NewHash(strings.Repeat("a", 40)) }),
		"both written and deleted":       with(func(r *CommitRequest) { r.Changes[0].Delete = true }),
	} {
		_, err := m.Stage(req)
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, m.store.damage())
}

func TestHostileAuthorAndMessagePassFsck(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	m := openFile(t, r)
	tip := fetch(t, m, "main")
	req := commitOn(tip, put("x", "y"))
	req.Author = Signature{Name: "evil <x@y> 1 +0000\nparent 1", Email: "a@b>\ncommitter x", When: bot.When}
	req.Message = "\n\nsubject\x00\n\nbody  \n\n"
	_, err := m.Push(t.Context(), stage(t, m, req))
	require.NoError(t, err)
	r.Fsck()
	require.Equal(t, "evil x@y 1 +0000parent 1|a@bcommitter x|subject\n\nbody", r.Git("log", "-1", "--format=%an|%ae|%B", "main"))
}

// lateCloser closes when the command has ended.
type lateCloser struct {
	io.WriteCloser
	ended func()
}

func (l *lateCloser) Close() error {
	l.ended()
	return l.WriteCloser.Close()
}

// A server that needs no pack for what was asked may have ended before the mirror says that nothing more comes: its
// report counts.
func TestServerEndsBeforeTheEndOfAPush(t *testing.T) {
	t.Parallel()
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	tip := plumbing.NewHash(r.Commit(gittest.Commit{Branch: "rampart/a", Parent: "main", Write: map[string]string{"x": "1"}}))
	server := gittest.ServeSSH(t)
	m := openMirror(t, way{url: server.URL(r), auth: Auth{SSHKey: SecretFile(server.KeyFile), KnownHosts: server.KnownHostsFile}})
	sess, adv, err := m.remote.open(t.Context(), receivePack)
	require.NoError(t, err)
	s := sess.(*stream)
	ended := sync.OnceFunc(s.wait)
	s.stdin, s.wait = &lateCloser{s.stdin, ended}, ended
	defer s.close()
	req, err := updateRequest(adv.Capabilities, &packp.Command{Name: plumbing.ReferenceName(refOf("rampart/a")), Old: tip})
	require.NoError(t, err)
	req.Packfile = io.NopCloser(strings.NewReader(""))
	report, err := s.push(t.Context(), req)
	require.NoError(t, err)
	require.NoError(t, report.Error())
	require.Empty(t, r.TipOrNone("rampart/a"))
}
