package gitops

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/diskcache"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// filtering serves a repository that leaves blobs out where it is asked to, until away is set. packs counts what it was
// asked for.
type filtering struct {
	url   string
	packs atomic.Int64
	away  atomic.Bool
}

func filters(t *testing.T, r *gittest.Repo) *filtering {
	t.Helper()
	r.Git("config", "uploadpack.allowFilter", "true")
	f := &filtering{}
	f.url = gittest.ServeHTTP(t, r, gittest.HTTPConfig{Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if f.away.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			if strings.HasSuffix(req.URL.Path, "/git-upload-pack") {
				f.packs.Add(1)
			}
			next.ServeHTTP(w, req)
		})
	}}).URL
	return f
}

func (f *filtering) open(t *testing.T) *Repository {
	t.Helper()
	repo, err := Open(Config{URL: f.url, Branch: "main", CacheDir: t.TempDir(), Author: "rampart", Email: "rampart@example.com",
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return gittest.Epoch }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, repo.Close()) })
	return repo
}

// A tree that a survey lists, and that the mirror has lost, is damage: the next survey fills the mirror anew.
func TestSurveyOfLostTree(t *testing.T) {
	for _, leavesOut := range []bool{false, true} {
		t.Run(fmt.Sprintf("leaves out contents: %v", leavesOut), func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: manyWorkers(3)})
			served := filters(t, r)
			r.Git("config", "uploadpack.allowFilter", strconv.FormatBool(leavesOut))
			dir := t.TempDir()
			open := func() *Repository {
				repo, err := Open(Config{URL: served.url, Branch: "main", CacheDir: dir, Author: "rampart", Email: "rampart@example.com",
					Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return gittest.Epoch }})
				require.NoError(t, err)
				return repo
			}
			repo := open()
			want, _ := surveyOf(t, repo)
			require.NoError(t, repo.Close())
			loseObject(t, dir, r.Git("rev-parse", "main:deploy"))
			repo = open()
			t.Cleanup(func() { require.NoError(t, repo.Close()) })
			_, _, err := repo.Survey(t.Context())
			require.ErrorContains(t, err, "is not in the mirror")
			got, _ := surveyOf(t, repo)
			require.Empty(t, cmp.Diff(want, got))
		})
	}
}

// loseObject packs the one mirror below a folder again, without one object.
func loseObject(t *testing.T, dir, lost string) {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(dir, "*", "*", "objects", "pack"))
	require.NoError(t, err)
	require.Len(t, packs, 1)
	git := func(stdin string, args ...string) string {
		cmd := exec.Command("git", append([]string{"--git-dir", filepath.Dir(filepath.Dir(packs[0]))}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		require.NoError(t, err)
		return string(out)
	}
	objects := git("", "cat-file", "--batch-all-objects", "--batch-check=%(objectname)", "--unordered")
	require.Contains(t, objects, lost+"\n")
	old, err := filepath.Glob(filepath.Join(packs[0], "*"))
	require.NoError(t, err)
	git(strings.Replace(objects, lost+"\n", "", 1), "pack-objects", "-q", filepath.Join(packs[0], "pack"))
	for _, file := range old {
		require.NoError(t, os.Remove(file))
	}
}

// manyWorkers are worker deployments with records, beside files of somebody else.
func manyWorkers(n int) map[string]string {
	files := map[string]string{"connection.yaml": connectionYAML, "policies/a.rego": "package rampart.spec\n", "policies/data.yaml": "a: 1\n",
		"rampart.yaml": `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: default, specs: ["*.yaml"], output: {path: deploy}, namespace: shop, policies: ["policies/*.rego"], data: ["policies/data.yaml"]}
`}
	for i := range n {
		name := fmt.Sprintf("w%02d", i)
		files[name+".yaml"] = specYAML("shop", name, "i:1")
		files["deploy/shop/"+name+"/routing.yaml"] = routingYAML(name, name+".yaml")
		files["deploy/shop/"+name+"/versions/v1/deployment.yaml"] = "# " + name + "\n"
		files[fmt.Sprintf("src/%d/main.go", i)] = fmt.Sprintf("package p%d\n", i)
	}
	return files
}

// withoutManifests are snapshots as a survey gives them.
func withoutManifests(all []rollout.Snapshot) []rollout.Snapshot {
	for _, s := range all {
		for name, f := range s.Record.Files {
			if strings.HasPrefix(name, "versions/") {
				s.Record.Files[name] = rollout.File{Hash: f.Hash}
			}
		}
	}
	return all
}

// A reading gives the same as one from a server that leaves nothing out, in a few requests. What belongs to others
// stays on the server.
func TestReadOfPartialMirror(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: manyWorkers(30)})
	f := filters(t, r)
	repo := f.open(t)
	require.Empty(t, cmp.Diff(read(t, open(t, r)), read(t, repo)))
	require.True(t, repo.mirror.Partial())
	require.LessOrEqual(t, f.packs.Load(), int64(6), "commit and trees, rampart.yaml, specs, policies, data, records")
	for i := range 30 {
		source := plumbing.NewHash(r.Git("rev-parse", fmt.Sprintf("main:src/%d/main.go", i)))
		require.Len(t, repo.mirror.Lacking([]git.Hash{source}), 1)
	}

	before := f.packs.Load()
	r.Commit(gittest.Commit{Write: map[string]string{"w07.yaml": specYAML("shop", "w07", "i:2"), "src/7/main.go": "package other\n"}})
	require.Empty(t, cmp.Diff(read(t, open(t, r)), read(t, repo)))
	require.Equal(t, before+1, f.packs.Load(), "what is new comes with its content")

	r.Git("config", "uploadpack.allowFilter", "false") // the file that moves was left out, and has to be asked for all the same
	moved := r.Files("main")["src/3/main.go"]
	r.Commit(gittest.Commit{Write: map[string]string{"policies/moved.rego": moved}, Delete: []string{"src/3/main.go"}})
	require.Equal(t, moved, read(t, repo).Environments[0].Policies[1].Text)
}

// A restart without its mirror fetches commits and trees, and of what the run before knew only what is looked at. The
// rest comes with the surveys after it, so that everything can be loaded when the server is away.
func TestSurveyOfPartialMirror(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: manyWorkers(30)})
	f := filters(t, r)
	first := f.open(t)
	_, _, err := first.Survey(t.Context())
	require.NoError(t, err)
	kept := diskcache.File{Path: filepath.Join(t.TempDir(), "cached"), Key: "v", Parts: []diskcache.Part{first}}
	require.NoError(t, kept.Save())

	next := f.open(t)
	kept.Parts = []diskcache.Part{next}
	require.NoError(t, kept.Load())
	all, load := surveyOf(t, next)
	require.Len(t, all, 30)
	require.True(t, all[0].Partial)
	whole := withoutManifests(read(t, open(t, r)).Environments[0].Deployments)
	packs := f.packs.Load()
	loaded, err := load(t.Context(), all[4:9])
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(whole[4:9], loaded))
	require.LessOrEqual(t, f.packs.Load()-packs, int64(2), "specs, and records")

	f.away.Store(true)
	loaded, err = load(t.Context(), all)
	require.ErrorContains(t, err, "503")
	require.Empty(t, cmp.Diff(whole[4:9], loaded), "what is here is loaded all the same")
	f.away.Store(false)

	next.atOnce = 20
	lacking := func() int { return len(next.mirror.Lacking(next.survey.reader.Surveyed().Blobs(t.Context()))) }
	require.Equal(t, 50, lacking(), "two files of each that was not loaded")
	f.away.Store(true)
	next.Complete(t.Context())
	f.away.Store(false)
	packs = f.packs.Load()
	next.Complete(t.Context())
	require.Equal(t, packs, f.packs.Load(), "a server that does not answer is left alone for a while")
	require.Equal(t, 50, lacking())
	next.later.until = time.Time{}
	for _, left := range []int{30, 10, 0} {
		packs = f.packs.Load()
		next.Complete(t.Context())
		require.Equal(t, packs+1, f.packs.Load())
		require.Equal(t, left, lacking())
	}
	f.away.Store(true)
	loaded, err = load(t.Context(), all)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(whole, loaded))
	f.away.Store(false)
	packs = f.packs.Load()
	next.Complete(t.Context())
	require.Equal(t, packs, f.packs.Load(), "all is there")

	again := f.open(t)
	kept.Parts = []diskcache.Part{again}
	require.NoError(t, kept.Load())
	surveyOf(t, again)
	again.later = later{known: true}
	packs = f.packs.Load()
	again.Complete(t.Context())
	require.Equal(t, packs, f.packs.Load(), "what is lacking is looked for once, and not each time")
	again.later.filled = -1
	again.Complete(t.Context())
	require.Equal(t, packs+1, f.packs.Load(), "a mirror that was filled anew lacks other things")
}

// Content that a path had earlier is brought back from history. Only that content is downloaded.
func TestBringBackFromPartialMirror(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: manyWorkers(3)})
	const file = "deploy/shop/w01/versions/v1/deployment.yaml"
	blob := r.Git("rev-parse", "main:"+file)
	r.Commit(gittest.Commit{Delete: []string{file}})
	repo := filters(t, r).open(t)
	env := read(t, repo).Environments[0]
	commit := rollout.Commit{Environment: env.Environment, Base: env.Base, Message: "bring back", Changes: []rollout.FileChange{{Path: file, Blob: blob}}}
	_, err := repo.Commit(t.Context(), commit)
	require.NoError(t, err)
	require.Equal(t, "# w01\n", r.Files("main")[file])
	r.Fsck()
}

// A survey knows manifests of versions by their hashes. What they say is read where it is wanted, and stays on the
// server until then.
func TestManifestsOfSurvey(t *testing.T) {
	r := gittest.NewBareRepo(t)
	files := manyWorkers(2)
	files["deploy/shop/w00/versions/v1/deployment.yaml"], files["deploy/shop/w00/versions/v1/pool-a.yaml"] = "kind: Deployment\n", "kind: Pool\n"
	r.Commit(gittest.Commit{Write: files})
	deployment, pool := rollout.File{Hash: hashOf("kind: Deployment\n")}, rollout.File{Hash: hashOf("kind: Pool\n")}
	lazy := filters(t, r)
	for name, repo := range map[string]*Repository{"whole": open(t, r), "partial": lazy.open(t)} {
		t.Run(name, func(t *testing.T) {
			all, load := surveyOf(t, repo)
			lacks := func() int {
				return len(repo.mirror.Lacking([]git.Hash{plumbing.NewHash(deployment.Hash), plumbing.NewHash(pool.Hash)}))
			}
			was := all[0].Record.Files
			require.Equal(t, []rollout.File{deployment, pool}, []rollout.File{was["versions/v1/deployment.yaml"], was["versions/v1/pool-a.yaml"]})
			require.NotEmpty(t, was["routing.yaml"].Data)
			repo.Complete(t.Context())
			if name == "partial" {
				require.Equal(t, 2, lacks(), "nobody needs them")
			}
			all[0].LoadFiles = []string{"versions/v1/deployment.yaml"}
			if name == "partial" {
				lazy.away.Store(true)
				loaded, err := load(t.Context(), all)
				require.ErrorContains(t, err, "1 worker deployments could not be read")
				require.Equal(t, all[1:], loaded)
				lazy.away.Store(false)
			}
			loaded, err := load(t.Context(), all)
			require.NoError(t, err)
			now := loaded[0].Record.Files
			require.Equal(t, rollout.File{Hash: deployment.Hash, Data: "kind: Deployment\n"}, now["versions/v1/deployment.yaml"])
			require.Equal(t, []rollout.File{pool, deployment}, []rollout.File{now["versions/v1/pool-a.yaml"], was["versions/v1/deployment.yaml"]})
			require.Empty(t, loaded[0].LoadFiles)
			if name == "partial" {
				require.Equal(t, 1, lacks())
			}
			r.Commit(gittest.Commit{Write: map[string]string{"w01.yaml": specYAML("shop", "w01", "i:"+name)}})
			all, load = surveyOf(t, repo)
			require.True(t, all[0].Partial)
			loaded, err = load(t.Context(), all[:1])
			require.NoError(t, err)
			require.Equal(t, was, loaded[0].Record.Files)
		})
	}
}
