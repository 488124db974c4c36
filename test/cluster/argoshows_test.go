package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/install/crds"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/statetable"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// TestArgoCDShows asks Argo CD's API server, as its pages do. It asks for the health of an object in each state, and
// for the commit that asked for what a commit of the bot has.
func TestArgoCDShows(t *testing.T) {
	t.Parallel()
	testneed.Long(t)
	s := Start(t)
	s.Kubectl(t, string(crds.All()), "apply", "--server-side", "-f", "-")
	s.established(t)
	url := s.ArgoCD(t).server(t, s.Kubeconfig)
	t.Run("the health of every state", func(t *testing.T) { showsHealth(t, s, url) })
	t.Run("the commit that asked", func(t *testing.T) { showsOrigin(t, s, url) })
}

// application applies an Application of a folder of a repository.
func (s *Server) application(t *testing.T, name, repo, folder string) {
	t.Helper()
	s.Kubectl(t, fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: %s, namespace: argocd}
spec:
  project: default
  source: {repoURL: %q, targetRevision: main, path: %s}
  destination: {server: "https://kubernetes.default.svc"}
  syncPolicy: {automated: {}}
`, name, repo, folder), "apply", "--server-side", "-f", "-")
}

// showsHealth has objects of both kinds applied in each state. Of one, Argo CD judges by our script, of the other by
// that of the guide.
func showsHealth(t *testing.T, s *Server, url string) {
	j := newJudges(t)
	ours, err := os.ReadFile(j.ours)
	require.NoError(t, err)
	guide, err := os.ReadFile(j.guide)
	require.NoError(t, err)
	for manager, script := range map[string]string{"rampart": string(ours),
		"guide": strings.ReplaceAll(string(guide), "temporal.io_TemporalWorkerDeployment", "temporal.io_WorkerDeployment")} {
		s.Kubectl(t, script, "apply", "--server-side", "--field-manager", manager, "-f", "-")
	}
	want, files := map[string]string{}, map[string]string{}
	for _, row := range statetable.Rows(t) {
		object := inState(t, row, v1alpha1.RampProgressing)
		for kind, health := range map[string]string{
			v1alpha1.KindTemporalWorkerDeployment: row.ArgoCD, v1alpha1.KindWorkerDeployment: row.Guide,
		} {
			object.SetKind(kind)
			data, err := yaml.Marshal(object.Object)
			require.NoError(t, err)
			name := kind + "/" + object.GetName()
			files["states/"+strings.ToLower(strings.ReplaceAll(name, "/", "-"))+".yaml"], want[name] = string(data), health
		}
	}
	repo := gittest.NewBareRepo(t)
	repo.Commit(gittest.Commit{Write: files})
	s.application(t, "states", gittest.ServeHTTP(t, repo, gittest.HTTPConfig{}).URL, "states")
	var got map[string]string
	eventually(t, func() error {
		var tree struct {
			Nodes []struct {
				Kind, Name string
				Health     *struct{ Status string }
			}
		}
		if err := ask(t, url+"/api/v1/applications/states/resource-tree", &tree); err != nil {
			return err
		}
		got = map[string]string{}
		for _, n := range tree.Nodes {
			if n.Health != nil && n.Health.Status != "Missing" { // not applied yet
				got[n.Kind+"/"+n.Name] = n.Health.Status
			}
		}
		if len(got) < len(want) {
			return fmt.Errorf("the health of %d of %d objects is known", len(got), len(want))
		}
		return nil
	})
	require.Equal(t, want, got)
	asksKubectl(t, s)
}

// asksKubectl has kubectl wait for the object of each row, as a pipeline does: for a second, if it has to wait.
func asksKubectl(t *testing.T, s *Server) {
	t.Helper()
	rows := statetable.Rows(t)
	said := make([]string, len(rows))
	var asked sync.WaitGroup
	for i, row := range rows {
		timeout := "1s"
		if row.Kubectl == "done" {
			timeout = patience.String()
		}
		asked.Go(func() {
			out, err := s.kubectl(t, "", "wait", "-n", "payments", "temporalworkerdeployment/"+objectName(row),
				"--for=condition=Ready", "--timeout="+timeout)
			switch {
			case err == nil && strings.Contains(out, objectName(row)+" condition met"):
				said[i] = "done"
			case err != nil && strings.Contains(out, "timed out waiting for the condition"):
				said[i] = "waits"
			default:
				said[i] = fmt.Sprintf("%v: %s", err, out)
			}
		})
	}
	asked.Wait()
	for i, row := range rows {
		require.Equal(t, row.Kubectl, said[i], row.State)
	}
}

// showsOrigin has the bot commit, and finds the developer's commit beside the bot's.
func showsOrigin(t *testing.T, s *Server, url string) {
	temporal := temporalenv.Start(t, temporalenv.Options{})
	_, err := temporal.Namespace(t.Context(), "orders")
	require.NoError(t, err)
	repo := gittest.NewBareRepo(t)
	when := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	repo.Commit(gittest.Commit{When: when, Write: map[string]string{
		"rampart.yaml": "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec:\n  environments:\n" +
			"  - {name: prod, specs: [workers/**], output: {path: deploy}, cd: {hydrator: true}}\n",
		"workers/connection.yaml": fmt.Sprintf("apiVersion: temporal.io/v1alpha1\nkind: Connection\n"+
			"metadata: {name: temporal, namespace: payments}\nspec: {hostPort: %q}\n", temporal.Address()),
	}})
	d := &delivery{t: t, server: s, host: host{repo: repo}, clone: filepath.Join(t.TempDir(), "workers"), steps: oneStep}
	d.git("clone", "-q", repo.Dir, d.clone)
	d.push("worker:v1")
	asked := repo.Git("rev-parse", "main")
	repo.Commit(gittest.Commit{When: when, Write: map[string]string{"README.md": "workers\n"}, Message: "Say what this is"})
	r := build(t)
	said, code := r.run(t, "run", "--once", "--repo", repo.URL())
	require.Zero(t, code, said)
	bots := repo.Git("rev-parse", "main")
	require.NotEqual(t, asked, bots, said)
	reads := gittest.ServeHTTP(t, repo, gittest.HTTPConfig{}).URL
	s.application(t, "workers", reads, "deploy")

	var shown struct {
		Author     string
		References []struct {
			Commit struct{ Author, Date, Subject, Body, SHA, RepoURL string }
		}
	}
	eventually(t, func() error { return ask(t, url+"/api/v1/applications/workers/revisions/"+bots+"/metadata", &shown) })
	require.Len(t, shown.References, 1)
	commit := shown.References[0].Commit
	require.Equal(t, asked, commit.SHA, "not the one after it, which changed no spec")
	require.Equal(t, "roll out worker:v1", commit.Subject)
	require.Equal(t, repo.Git("show", "-s", `--format="%an" <%ae>`, asked), commit.Author)
	date, err := time.Parse(time.RFC3339, commit.Date)
	require.NoError(t, err)
	require.Equal(t, repo.Git("show", "-s", "--format=%at", asked), strconv.FormatInt(date.Unix(), 10))

	var metadata struct{ DrySha, Subject string }
	require.NoError(t, json.Unmarshal([]byte(repo.Git("show", "main:deploy/hydrator.metadata")), &metadata))
	require.Equal(t, asked, metadata.DrySha)
	require.Equal(t, "roll out worker:v1", metadata.Subject)

	// Argo CD applies the folder all the same, and the bot takes its own file for no edit of others.
	s.await(t, "Synced", "get", "-n", "argocd", "application", "workers", "-o", "jsonpath={.status.sync.status}")
	said, code = r.run(t, "run", "--once", "--repo", repo.URL())
	require.Zero(t, code, said)
	require.Equal(t, bots, repo.Git("rev-parse", "main"), said)
}

// ask gives the answer of a server to a GET, as JSON.
func ask(t *testing.T, url string, into any) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		return errors.Join(err, fmt.Errorf("%s: %s: %s", url, answer.Status, text))
	}
	return errors.Join(err, json.Unmarshal(text, into))
}
