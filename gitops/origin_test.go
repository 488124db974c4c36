package gitops

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/signature"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A spec comes from the commit that gave it its content, no matter who committed since.
func TestOriginIsTheCommitThatGaveTheSpecItsContent(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"workers/a.yaml": specYAML("shop", "a", "a:1"), "workers/b.yaml": specYAML("shop", "b", "b:1")}})
	one := r.Commit(gittest.Commit{Write: map[string]string{"workers/a.yaml": specYAML("shop", "a", "a:2"), "docs/a.md": "2"}, Message: "a 2"})
	r.Commit(gittest.Commit{Write: map[string]string{"other": "1"}})
	repo := open(t, r)
	origin := func() (a, b rollout.GitContext) {
		t.Helper()
		snapshots := read(t, repo).Environments[0].Deployments
		require.Equal(t, "", snapshots[0].Git.Commit, "nobody asked")
		got, err := repo.Origins(t.Context(), snapshots)
		require.NoError(t, err)
		require.Equal(t, snapshots[0].Git.SpecBlob, got[0].SpecBlob)
		return got[0], got[1]
	}
	a, b := origin()
	require.Less(t, b.Place, a.Place, "it came later")
	a.SpecBlob, a.Place = "", 0
	require.Empty(t, cmp.Diff(rollout.GitContext{Branch: "main", Commit: one, Author: a.Author, Committer: a.Author, When: a.When, Message: "a 2",
		Paths: []string{"docs/a.md", "workers/a.yaml"}}, a))
	require.Regexp(t, `^\S.* <\S+@\S+>$`, a.Author)
	require.WithinDuration(t, gittest.Epoch, a.When, 24*time.Hour)
	require.Equal(t, []string{"workers/a.yaml", "workers/b.yaml"}, b.Paths, "the first commit")

	two := r.Commit(gittest.Commit{Write: map[string]string{"workers/a.yaml": specYAML("shop", "a", "a:1")},
		Message: "Revert \"a 2\"\n\nThis reverts commit " + one + ".\n"})
	a, again := origin()
	require.Equal(t, two, a.Commit)
	require.Equal(t, one, a.Reverts)
	require.Equal(t, b, again)
	require.Len(t, repo.origins, 2, "what is gone is forgotten")
}

// Whether the commit is signed is what its signature says, of the keys that are trusted.
func TestOriginsAreSigned(t *testing.T) {
	key, public := newSSHKey(t)
	signers, err := signature.Load(write(t, "ada@example.com "+public+"\n"))
	require.NoError(t, err)

	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"workers/a.yaml": specYAML("shop", "a", "a:1")}})
	repo := open(t, r)
	origin := func() rollout.GitContext {
		t.Helper()
		got, err := repo.Origins(t.Context(), read(t, repo).Environments[0].Deployments)
		require.NoError(t, err)
		return got[0]
	}
	require.Empty(t, origin().Signed, "the bot trusts nobody")
	repo.cfg.Signers = signers
	repo.origins = nil
	require.Equal(t, rollout.No, origin().Signed)

	r.Commit(gittest.Commit{Write: map[string]string{"workers/a.yaml": specYAML("shop", "a", "a:2")}})
	signed := r.Git("-c", "gpg.format=ssh", "-c", "user.signingkey="+key, "commit-tree", "-S", "-p", "main~1", "-m", "a 2", "main^{tree}")
	r.Git("update-ref", "refs/heads/main", signed)
	got := origin()
	require.Equal(t, signed, got.Commit)
	require.Equal(t, rollout.Yes, got.Signed)
	require.Equal(t, "ada@example.com", got.Signer)

	r.Commit(gittest.Commit{Write: map[string]string{"workers/a.yaml": specYAML("shop", "a", "a:3")}})
	signed = r.GitInput([]byte("a 3\n"+strings.Repeat("x", git.MaxCommit)), "-c", "gpg.format=ssh", "-c", "user.signingkey="+key, "commit-tree", "-S", "-p", "main~1", "main^{tree}")
	r.Git("update-ref", "refs/heads/main", signed)
	got = origin()
	require.Equal(t, signed, got.Commit)
	require.Equal(t, rollout.No, got.Signed, "it is too large to be looked at as a whole")
}

// A spec that somebody signed says little where another changed its connection, or a template of its objects: all of
// them have to be signed.
func TestOriginsCoverWhatASpecStandsOn(t *testing.T) {
	key, public := newSSHKey(t)
	other, otherPublic := newSSHKey(t)
	signers, err := signature.Load(write(t, "ada@example.com "+public+"\nbob@example.com "+otherPublic+"\n"))
	require.NoError(t, err)
	const template = `apiVersion: temporal.io/v1alpha1
kind: WorkerResourceTemplate
metadata: {name: pdb, namespace: shop}
spec:
  temporalWorkerDeploymentRef: {name: a}
  template: {apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {maxUnavailable: 1, selector: {matchLabels: {}}}}
`
	files := map[string]string{"workers/a.yaml": specYAML("shop", "a", "a:1"), "workers/connection.yaml": connectionYAML, "workers/pdb.yaml": template}
	for changed := range files {
		t.Run(changed, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			signs := func(key, name string) {
				t.Helper()
				r.Commit(gittest.Commit{Write: map[string]string{name: files[name]}})
				args := []string{"-c", "gpg.format=ssh", "-c", "user.signingkey=" + key, "commit-tree", "-S", "-m", "signed", "main^{tree}"}
				if r.Git("rev-list", "--count", "main") != "1" {
					args = append(args, "-p", "main~1")
				}
				r.Git("update-ref", "refs/heads/main", r.Git(args...))
			}
			r.Commit(gittest.Commit{Write: map[string]string{"README": "x"}})
			for name := range files {
				signs(key, name)
			}
			repo := open(t, r)
			repo.cfg.Signers = signers
			got := func() [][2]string {
				t.Helper()
				var out [][2]string
				for _, w := range []rollout.World{read(t, repo), surveyedWorld(t, repo)} {
					origins, err := repo.Origins(t.Context(), w.Environments[0].Deployments)
					require.NoError(t, err)
					out = append(out, [2]string{string(origins[0].Signed), origins[0].Signer})
				}
				return out
			}
			both := func(signed, signer string) [][2]string { return [][2]string{{signed, signer}, {signed, signer}} }
			require.Equal(t, both("Yes", "ada@example.com"), got())
			files[changed] += "# changed by somebody else\n"
			signs(other, changed)
			require.Equal(t, both("Yes", ""), got(), "no one person signed all of it")
			r.Commit(gittest.Commit{Write: map[string]string{changed: files[changed] + "# unsigned\n"}})
			require.Equal(t, both("No", ""), got())
		})
	}
}

// Content that went away and came back between two readings is of the commit that brought it back. So it is also where
// the history was written anew, or a merge has what was read last on its side.
func TestOriginsOfWhatCameBack(t *testing.T) {
	const file = "workers/a.yaml"
	r := gittest.NewBareRepo(t)
	text := func(tag string) map[string]string { return map[string]string{file: specYAML("shop", "a", "a:"+tag)} }
	r.Commit(gittest.Commit{Write: text("0")})
	r.Commit(gittest.Commit{Write: map[string]string{"workers/b.yaml": specYAML("shop", "b", "b:1")}})
	first := r.Commit(gittest.Commit{Write: text("1"), Message: "first"})
	repo := open(t, r)
	origin := func() string {
		t.Helper()
		got, err := repo.Origins(t.Context(), read(t, repo).Environments[0].Deployments)
		require.NoError(t, err)
		require.Len(t, repo.origins, 2, "each is known, and what is gone is forgotten")
		return got[0].Commit
	}
	require.Equal(t, first, origin())
	r.Commit(gittest.Commit{Write: text("2")})
	back := r.Commit(gittest.Commit{Write: text("1"), Message: "back"})
	r.Commit(gittest.Commit{Write: map[string]string{"other": "1"}})
	require.Equal(t, back, origin())
	require.Equal(t, back, origin(), "nothing happened")
	r.Commit(gittest.Commit{Write: map[string]string{"other": "2"}})
	require.Equal(t, back, origin())

	// The branch is set to another history.
	other := r.Commit(gittest.Commit{Parent: first + "~1", Write: text("1"), Message: "another history"})
	require.Equal(t, other, origin())

	// Somebody merges the branch into theirs, and pushes that: the branch's own line is now the side of a merge.
	side := r.Commit(gittest.Commit{Branch: "side", Parent: other + "~1", Write: map[string]string{"side": "1"}})
	merge := strings.TrimSpace(r.Git("commit-tree", "-p", side, "-p", other, "-m", "merge", r.Git("rev-parse", other+"^{tree}")))
	r.Git("update-ref", "refs/heads/main", merge)
	require.Equal(t, merge, origin())
}

// A server that is away costs one attempt in a while, and none once it is known to be away.
func TestOriginsOfAServerThatIsAway(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"workers/a.yaml": specYAML("shop", "a", "a:1")}})
	r.Commit(gittest.Commit{Write: map[string]string{"other": "1"}})
	repo := open(t, r)
	now := gittest.Epoch
	repo.cfg.Now = func() time.Time { return now }
	snapshots := read(t, repo).Environments[0].Deployments
	require.NoError(t, os.Rename(r.Dir, r.Dir+".away"))
	ask := func() (string, error) {
		got, err := repo.Origins(t.Context(), snapshots)
		require.Len(t, got, 1)
		return got[0].Commit, err
	}
	_, err := ask()
	require.Error(t, err, "the history is not there")
	commit, err := ask()
	require.NoError(t, err, "nobody is asked again at once")
	require.Empty(t, commit)

	now = now.Add(originPause)
	_, err = repo.Read(t.Context())
	require.Error(t, err)
	_, err = ask()
	require.NoError(t, err, "the server is known to be away")
	require.NoError(t, os.Rename(r.Dir+".away", r.Dir))
	read(t, repo)
	commit, err = ask()
	require.NoError(t, err)
	require.NotEmpty(t, commit)
}
