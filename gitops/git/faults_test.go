package git

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// seedsOf are how many places a connection is cut at, by transport: sshd takes a second to begin.
var seedsOf = map[string]int{"http": 40, "ssh": 8}

// behind puts a Cutter before the server of a transport.
func behind(t *testing.T, name string, r *gittest.Repo) (*gittest.Cutter, way) {
	t.Helper()
	if name == "http" {
		url := gittest.ServeHTTP(t, r, gittest.HTTPConfig{User: DefaultTokenUser, Password: "s3cret"}).URL
		cut := gittest.NewCutter(t, gittest.HostOf(url))
		return cut, way{url: cut.Before(t, url), auth: Auth{Password: SecretValue("s3cret")}}
	}
	ssh := gittest.ServeSSH(t)
	cut := gittest.NewCutter(t, ssh.Addr)
	return cut, way{url: cut.Before(t, ssh.URL(r)), auth: Auth{SSHKey: SecretFile(ssh.KeyFile), KnownHosts: ssh.KnownHostsFor(t, cut.Addr)}}
}

// noise cannot be compressed, so that a pack has a middle.
func noise(seed uint64, size int) string {
	random := rand.New(rand.NewPCG(seed, 0))
	out := make([]byte, size)
	for i := range out {
		out[i] = byte(random.IntN(256))
	}
	return string(out)
}

// A fetch is cut at random bytes, of a mirror that is empty and of one that has something. What is there stays usable,
// the error is one of the connection, and the next fetch brings everything.
func TestFetchIsCutInTheMiddle(t *testing.T) {
	for name, seeds := range seedsOf {
		seeds = testneed.Repeats(seeds)
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			files := map[string]string{}
			for i := range uint64(40) {
				files[fmt.Sprintf("d%d/f%d", i%7, i)] = noise(i, 2000)
			}
			r.Commit(gittest.Commit{Write: files})
			cut, w := behind(t, name, r)
			m := openMirror(t, w)
			fetch(t, m, "main")
			whole := cut.Passed(gittest.ToClient)
			require.NoError(t, m.Close())
			require.Greater(t, whole, int64(50_000))

			random := rand.New(rand.NewPCG(1, uint64(len(name))))
			for seed := range uint64(seeds) {
				dir := t.TempDir()
				m := openAt(t, dir, w)
				if seed%2 == 1 {
					fetch(t, m, "main")
					r.Commit(gittest.Commit{Write: map[string]string{"new": noise(seed+1000, 90_000)}})
				}
				cuts := cut.Cuts()
				cut.CutAfter(gittest.ToClient, 1+random.Int64N(whole))
				_, err := m.Fetch(soon(t), "main")
				cut.Mend()
				if cut.Cuts() == cuts { // it was over before
					require.NoError(t, err)
				}
				if err != nil {
					require.NotContains(t, err.Error(), "s3cret")
				}
				require.NoError(t, m.store.damage(), "what is there is whole")
				if seed%3 == 0 { // and as if killed
					_ = m.lock.Close()
					m = openAt(t, dir, w)
				}
				requireSame(t, r.Files("main"), readAll(t, m, fetch(t, m, "main").Tree))
				require.NoError(t, m.Close())
				mirrorFsck(t, dir)
			}
			require.Greater(t, cut.Cuts(), seeds/3)
		})
	}
}

// A push is cut at random bytes, on the way and on the way back. It is on the branch or it is not, and the next fetch
// says which. In the end each change is in one commit.
func TestPushIsCutInTheMiddle(t *testing.T) {
	testneed.Long(t)
	for name, seeds := range seedsOf {
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: first})
			cut, w := behind(t, name, r)
			m := openMirror(t, w)
			random := rand.New(rand.NewPCG(2, uint64(len(name))))
			outcomes := map[string]int{}
			for seed := range uint64(seeds) {
				tip := fetch(t, m, "main")
				file := fmt.Sprintf("f/%d", seed)
				s := stage(t, m, commitOn(tip, put(file, noise(seed, 20_000))))
				direction, most := gittest.ToServer, int64(26_000)
				if seed%2 == 1 {
					direction, most = gittest.ToClient, 1500
				}
				cut.CutAfter(direction, 1+random.Int64N(most))
				_, err := m.Push(soon(t), s)
				cut.Mend()
				var (
					unknown *UnknownOutcomeError
					access  *AccessError
				)
				switch {
				case err == nil:
					outcomes["done"]++
				case errors.As(err, &unknown):
					require.Equal(t, s.Commit, unknown.Commit)
					outcomes["unknown"]++
				default:
					require.ErrorAs(t, err, &access)
					outcomes["not sent"]++
				}
				settle(t, r)
				now := fetch(t, m, "main")
				require.Contains(t, []Hash{tip.Commit, s.Commit}, now.Commit)
				if access != nil {
					require.Equal(t, tip.Commit, now.Commit, "the error says that nothing was sent: %v", err)
				}
				if now.Commit == tip.Commit { // what the bot does: everything again
					_, err = m.Push(soon(t), stage(t, m, commitOn(now, put(file, noise(seed, 20_000)))))
					require.NoError(t, err)
				}
			}
			t.Log(outcomes)
			require.Greater(t, outcomes["unknown"], 1)
			r.Git("fsck", "--full", "--strict", "--no-dangling")
			require.Equal(t, fmt.Sprint(seeds+1), r.Git("rev-list", "--count", "main"))
			for seed := range seeds {
				require.Equal(t, "1", r.Git("rev-list", "--count", "main", "--", fmt.Sprintf("f/%d", seed)))
			}
		})
	}
}

// settle waits until no server works on the repository any more: one whose client is gone may still move the branch.
func settle(t *testing.T, r *gittest.Repo) {
	t.Helper()
	gone(t, "receive-pack", r.Dir)
}

// gone waits until no process has all these words in its command line.
func gone(t *testing.T, words ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
		require.NoError(t, err)
		for _, name := range commands {
			if data, err := os.ReadFile(name); err == nil && containsAll(string(data), words...) {
				return false
			}
		}
		return true
	}, soonest, tick)
}

// The disk is full, at each of many sizes, while a mirror is filled, adds to what it has, and closes. That is an error
// which says so, nothing half-written stays, and with room again everything is there. The limit is a file system of its
// own.
func TestDiskFull(t *testing.T) {
	testneed.Long(t)
	for name, way := range map[string]func(*limits){
		"as it comes":      func(l *limits) { l.fetch = 1 << 10 },
		"by way of memory": func(l *limits) { l.small = 1 << 10 },
	} {
		t.Run(name, func(t *testing.T) { fillDisk(t, way) })
	}
}

// fillDisk is TestDiskFull for a way of packs to disk.
func fillDisk(t *testing.T, limit func(*limits)) {
	r := gittest.NewBareRepo(t)
	for i := range uint64(4) {
		r.Commit(gittest.Commit{Write: map[string]string{fmt.Sprintf("f%d", i): noise(i, 60_000)}})
	}
	dir := t.TempDir()
	room := tmpfs(t, dir)
	failed := 0
	for kib := 16; kib <= 640; kib += 24 {
		room(kib)
		err := fillOnce(t, r, filler{dir, limit})
		if err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC, "with %d KiB", kib)
			require.Empty(t, filesIn(t, filepath.Join(dir, "m"), "objects/pack/tmp_*"), "with %d KiB", kib)
			failed++
		}
		room(8 << 10)
		m := openAt(t, filepath.Join(dir, "m"), way{url: r.URL()})
		limit(&m.store.limits)
		requireSame(t, r.Files("main"), readAll(t, m, fetch(t, m, "main").Tree))
		require.NotEmpty(t, filesIn(t, m.dir, "objects/pack/*.pack"), "it went to disk before it was closed")
		require.NoError(t, m.Close())
		mirrorFsck(t, m.dir)
		require.Empty(t, filesIn(t, m.dir, "objects/pack/tmp_*"))
		require.NoError(t, os.RemoveAll(m.dir))
	}
	require.Greater(t, failed, 3)
	r.Fsck()
}

// filler is where a mirror is filled, and how.
type filler struct {
	dir   string
	limit func(*limits)
}

// fillOnce fills a mirror, pushes, and closes it.
func fillOnce(t *testing.T, r *gittest.Repo, f filler) (err error) {
	t.Helper()
	m, err := Open(Config{URL: r.URL(), Dir: filepath.Join(f.dir, "m"), Log: (&logs{}).logger()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	f.limit(&m.store.limits)
	if _, err := m.Fetch(soon(t), "main"); err != nil {
		return err
	}
	tip := fetch(t, m, "main")
	_, err = m.Push(soon(t), stage(t, m, commitOn(tip, put("pushed", r.Tip("main")+noise(uint64(len(tip.Commit)), 30_000)))))
	require.NoError(t, err, "what is pushed is on the server, which is what counts")
	return nil
}
