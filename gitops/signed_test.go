package gitops

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/signature"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// newSSHKey makes a key, and gives its file and the public half.
func newSSHKey(t *testing.T) (private, public string) {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		testneed.Missing(t, "ssh-keygen is needed to sign: install openssh-client")
	}
	private = filepath.Join(t.TempDir(), "key")
	out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", private).CombinedOutput()
	require.NoError(t, err, "%s", out)
	text, err := os.ReadFile(private + ".pub")
	require.NoError(t, err)
	return private, strings.TrimSpace(string(text))
}

func write(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	return name
}

// What the bot commits is signed and marked where that is asked for, and git says so.
func TestCommitsAreSignedAndMarked(t *testing.T) {
	private, public := newSSHKey(t)
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"workers/a.yaml": specYAML("shop", "a", "a:1")}})
	repo := open(t, r)
	commit := func(message, content string) string {
		t.Helper()
		env := read(t, repo).Environments[0]
		hash, err := repo.Commit(t.Context(), rollout.Commit{Environment: env.Environment, Base: env.Base, Message: message,
			Changes: changeOf(env, content)})
		require.NoError(t, err)
		r.Fsck()
		return hash
	}
	allowed := []string{"-c", "gpg.ssh.allowedSignersFile=" + write(t, "rampart@example.com "+public+"\n"), "verify-commit"}

	require.NotContains(t, r.Git("cat-file", "commit", commit("plain\n\nbody\n", "1")), "gpgsig")
	key, err := signature.LoadKey(private, "")
	require.NoError(t, err)
	repo.cfg.SigningKey, repo.cfg.SkipCI = key, true
	hash := commit("one\n\nbody\n", "2")
	r.Git(append(allowed, hash)...)
	require.Equal(t, "one [skip ci]\n\nbody", r.Git("log", "-1", "--format=%B", hash))
	hash = commit("two", "3")
	r.Git(append(allowed, hash)...)
	require.Equal(t, "two [skip ci]", r.Git("log", "-1", "--format=%B", hash))
	require.Equal(t, fmt.Sprint(gittest.Epoch.Unix()), r.Git("log", "-1", "--format=%ct", hash))
}

// changeOf writes one file of an environment's output.
func changeOf(env rollout.EnvironmentWorld, content string) []rollout.FileChange {
	return []rollout.FileChange{{Path: env.Environment.Output.Path + "/x.yaml", Data: content}}
}

// gnupg is a keyring of its own.
type gnupg struct {
	t    *testing.T
	home string
}

func newGnupg(t *testing.T) gnupg {
	t.Helper()
	if _, err := exec.LookPath("gpg"); err != nil {
		testneed.Missing(t, "gpg is needed to sign: install gnupg")
	}
	home, err := os.MkdirTemp("", "gpg") // its sockets need a short path
	require.NoError(t, err)
	g := gnupg{t, home}
	t.Cleanup(func() {
		_, _ = g.try("gpgconf", "--kill", "gpg-agent")
		require.NoError(t, os.RemoveAll(home))
	})
	return g
}

func (g gnupg) try(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(gittest.Env(), "GNUPGHOME="+g.home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (g gnupg) run(name string, args ...string) string {
	g.t.Helper()
	out, err := g.try(name, args...)
	require.NoError(g.t, err, out)
	return out
}

// git verifies commits that are signed with an OpenPGP key, too: it says so of each of several commits, and whose
// they are. A git that does not know the key refuses them.
func TestCommitsAreSignedWithOpenPGP(t *testing.T) {
	testneed.Plain(t)
	g := newGnupg(t)
	const who, passphrase = "Rampart <rampart@example.com>", "in a file"
	unlocked := []string{"--batch", "-q", "--pinentry-mode", "loopback", "--passphrase", passphrase}
	g.run("gpg", append(unlocked, "--quick-generate-key", who, "ed25519", "sign", "never")...)
	key, err := signature.LoadKey(write(t, g.run("gpg", append(unlocked, "--armor", "--export-secret-keys", who)...)), passphrase)
	require.NoError(t, err)

	r := gittest.NewBareRepo(t)
	first := r.Commit(gittest.Commit{Write: map[string]string{"workers/a.yaml": specYAML("shop", "a", "a:1")}})
	repo := open(t, r)
	repo.cfg.SigningKey, repo.cfg.SkipCI = key, true
	env := read(t, repo).Environments[0]
	hash, err := repo.Commit(t.Context(), rollout.Commit{Environment: env.Environment, Base: env.Base, Parts: []rollout.CommitPart{
		{Message: "one\n\nbody\n", Changes: changeOf(env, "1")}, {Message: "two", Changes: changeOf(env, "2")}}})
	require.NoError(t, err)
	r.Fsck()
	require.Equal(t, hash, r.Tip("main"))
	made := strings.Fields(r.Git("rev-list", first+"..main"))
	require.Len(t, made, 2)
	stranger := newGnupg(t)
	for _, commit := range made {
		require.Contains(t, g.run("git", "-C", r.Dir, "verify-commit", commit), "Good signature from \""+who+"\"")
		out, err := stranger.try("git", "-C", r.Dir, "verify-commit", commit)
		require.Error(t, err, out)
	}
	require.Equal(t, "two [skip ci]", r.Git("log", "-1", "--format=%B"))

	signers, err := signature.Load(write(t, g.run("gpg", "--batch", "--armor", "--export", who)))
	require.NoError(t, err)
	repo.cfg.Signers = signers
	signed, signer, err := repo.signed(plumbing.NewHash(hash))
	require.NoError(t, err)
	require.Equal(t, rollout.Yes, signed)
	require.Contains(t, signer, "rampart@example.com")
}
