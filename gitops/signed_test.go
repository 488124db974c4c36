package gitops

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
			Changes: []rollout.FileChange{{Path: env.Environment.Output.Path + "/x.yaml", Data: content}}})
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
