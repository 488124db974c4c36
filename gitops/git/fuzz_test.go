package git

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // the pack format's checksum
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// A commit that parses has what its bytes say, and nothing panics.
func FuzzParseCommit(f *testing.F) {
	tree := "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n"
	f.Add([]byte(tree + "parent 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nsubject\n"))
	f.Add([]byte(tree + "author <> -1 +9999\ncommitter\ngpgsig -----BEGIN\n x\n\n"))
	f.Add([]byte(tree + "mergetag object 1\n type commit\n\nx"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseCommit(Hash{1}, data)
		if err != nil {
			return
		}
		again, err := ParseCommit(Hash{1}, append([]byte{}, data...))
		require.NoError(t, err)
		require.Equal(t, c, again)
	})
}

// packSeeds are packs as git makes them, with deltas, and as we do.
func packSeeds(f *testing.F) [][]byte {
	r := gittest.NewBareRepo(f)
	for i := range 3 {
		r.Commit(gittest.Commit{Write: map[string]string{"a": noise(1, 3000) + fmt.Sprint(i), "b": fmt.Sprint(i)}})
	}
	ours, err := encodePack([]obj{newObj(plumbing.BlobObject, []byte("x")), newObj(plumbing.TreeObject, nil)})
	require.NoError(f, err)
	objects := r.Git("rev-list", "--objects", "--no-object-names", "main")
	return [][]byte{[]byte(r.GitInput([]byte(objects+"\n"), "pack-objects", "--stdout", "-q")), ours.data, []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00")}
}

// A pack from a server that lies: in memory and on disk it is read to its end or refused, without a panic, within
// bounds.
func FuzzPack(f *testing.F) {
	for _, seed := range packSeeds(f) {
		f.Add(seed)
	}
	dir, err := os.MkdirTemp("", "fuzz-pack")
	require.NoError(f, err)
	f.Cleanup(func() { _ = os.RemoveAll(dir) })
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1 << 20
		objs, _, err := unpack(data, limit)
		require.True(t, err == nil || objs == nil)
		sub, err := os.MkdirTemp(dir, "")
		require.NoError(t, err)
		defer func() { _ = os.RemoveAll(sub) }()
		require.NoError(t, createLayout(sub, "file:///x"))
		s := newStore(sub, defaultLimits)
		defer func() { _ = s.close() }()
		if s.writePack(bytes.NewReader(data)) != nil {
			require.Empty(t, filesIn(t, sub, "objects/pack/*"))
		}
	})
}

// A pack with a right checksum, whatever is in it: what it is read as is what go-git reads, within bounds.
func FuzzUnpack(f *testing.F) {
	for _, seed := range packSeeds(f) {
		f.Add(seed[:max(len(seed)-sha1.Size, packHeader)])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		const limit = 1 << 20
		data := checked(bytes.Clone(body))
		size := 0
		objs, p, err := unpack(data, limit)
		for _, o := range objs {
			size += len(o.data)
			require.Equal(t, plumbing.ComputeHash(o.kind, o.data), o.hash)
		}
		require.LessOrEqual(t, size, limit)
		require.True(t, err == nil || objs == nil)
		if err != nil {
			return
		}
		if theirs, refused := goGitsObjects(data); refused == nil {
			require.Equal(t, theirs, byHash(objs))
		}
		_, err = p.index(objs)
		require.NoError(t, err)
	})
}

// told is a server's side of a conversation, made up before it began.
type told struct{ said []byte }

func (told) hide(said string) string { return said }

func (told) close() {}

type sink struct{}

func (sink) Write(p []byte) (int, error) { return len(p), nil }

func (sink) Close() error { return nil }

func (r told) open(ctx context.Context, s service) (session, *packp.AdvRefs, error) {
	w := &watch{limit: DefaultSilence}
	return openStream(ctx, &command{service: s, watch: w, stdin: sink{}, stdout: io.Reader(bytes.NewReader(r.said)), stderr: &head{},
		wait: func() {}, kill: func() {}, access: &AccessError{Reason: ReasonNotFound}})
}

// conversation records what a real server says to a fetch and to a push.
func conversation(f *testing.F, push bool) []byte {
	r := gittest.NewBareRepo(f)
	r.Commit(gittest.Commit{Write: first})
	m, err := Open(Config{URL: r.URL(), Dir: f.TempDir(), Log: (&logs{}).logger()})
	require.NoError(f, err)
	defer m.Close()
	real := &recorded{remote: m.remote}
	m.remote = real
	tip, err := m.Fetch(f.Context(), "main")
	require.NoError(f, err)
	if push {
		real.said.Reset()
		s, err := m.Stage(commitOn(tip, put("x", "y")))
		require.NoError(f, err)
		_, err = m.Push(f.Context(), s)
		require.NoError(f, err)
	}
	return real.said.Bytes()
}

type recorded struct {
	remote
	said bytes.Buffer
}

func (r *recorded) open(ctx context.Context, s service) (session, *packp.AdvRefs, error) {
	sess, adv, err := r.remote.open(ctx, s)
	if err != nil {
		return sess, adv, err
	}
	// What was read already is said again by its own encoder.
	if err := adv.Encode(&r.said); err != nil {
		return nil, nil, errors.Join(err, errors.New("encode"))
	}
	stream := sess.(*stream)
	stream.out.Reset(io.TeeReader(stream.stdout, &r.said))
	return sess, adv, nil
}

// A server says anything. A fetch ends with an error or with a commit that is whole. A push never ends with a success
// that was not reported.
func FuzzConversation(f *testing.F) {
	f.Add(conversation(f, false))
	f.Add(conversation(f, true))
	f.Add([]byte("0000"))
	f.Add([]byte("001eERR no such repository here"))
	f.Fuzz(func(t *testing.T, said []byte) {
		m, err := Open(Config{URL: "file:///x", Dir: t.TempDir(), Log: (&logs{}).logger()})
		require.NoError(t, err)
		defer m.Close()
		m.remote = told{said}
		tip, err := m.Fetch(t.Context(), "main")
		if err == nil {
			_, err := m.Commit(tip.Commit)
			require.NoError(t, err)
		}
		tree := newObj(plumbing.TreeObject, nil)
		s, err := m.Stage(CommitRequest{Branch: "main", Changes: []Change{put("a", "b")}, Message: "x", Author: bot, Committer: bot})
		require.NoError(t, err, tree.hash)
		if _, err := m.Push(t.Context(), s); err == nil {
			require.True(t, bytes.Contains(said, []byte("ok refs/heads/main")) || bytes.Contains(said, []byte(s.Commit.String())), "nobody said so")
		}
	})
}
