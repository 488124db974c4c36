package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

const ciExamples = "../../examples/ci"

// platform is a CI system and its example.
type platform struct {
	file string
	// change is the ref that a change has on the server.
	change string
	// variables are what the platform sets; @SERVER@ and @HERE@ are the server's folder and the job's.
	variables []string
	// result is the file that people are shown, "" for the log.
	result string
	// commands show that the log is read for commands.
	commands bool
}

var platforms = map[string]platform{
	"github": {file: ".github/workflows/rampart-preview.yml", change: "refs/pull/7/merge", result: "summary", commands: true, variables: []string{
		"GITHUB_SERVER_URL=file://@SERVER@", "GITHUB_REPOSITORY=team/workers.git", "GITHUB_REF=refs/pull/7/merge", "GITHUB_BASE_REF=main",
		"GITHUB_HEAD_REF=$(touch pwned);`touch pwned`", "RUNNER_TEMP=@HERE@/temp", "GITHUB_STEP_SUMMARY=@HERE@/summary", "TOKEN=very-secret"}},
	"gitea": {file: ".gitea/workflows/rampart-preview.yml", change: "refs/pull/7/head", variables: []string{
		"GITHUB_SERVER_URL=file://@SERVER@", "GITHUB_REPOSITORY=team/workers.git", "GITHUB_REF=refs/pull/7/head", "GITHUB_BASE_REF=main",
		"GITHUB_HEAD_REF=$(touch pwned);`touch pwned`", "RUNNER_TEMP=@HERE@/temp", "TOKEN=very-secret"}},
	"gitlab": {file: ".gitlab-ci.yml", change: "refs/merge-requests/7/head", result: "preview.md", variables: []string{
		"CI_MERGE_REQUEST_PROJECT_URL=file://@SERVER@/team/workers", "CI_MERGE_REQUEST_IID=7", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main",
		"CI_COMMIT_REF_NAME=$(touch pwned);`touch pwned`", "CI_JOB_TOKEN=very-secret"}},
}

// steps are the scripts of an example in their order, without the installation of rampart.
func (p platform) steps(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(ciExamples, name, p.file))
	require.NoError(t, err)
	var out []string
	if name == "gitlab" {
		var pipeline map[string]struct {
			Variables map[string]string
			Script    []string
		}
		require.NoError(t, yaml.Unmarshal(text, &pipeline))
		require.Equal(t, "none", pipeline["rampart-preview"].Variables["GIT_STRATEGY"], "nothing of the change is checked out")
		return []string{strings.Join(pipeline["rampart-preview"].Script, "\n")}
	}
	var workflow struct {
		On          map[string]any
		Permissions map[string]string
		Jobs        map[string]struct {
			Steps []struct{ Name, Uses, Run string }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &workflow))
	require.Equal(t, map[string]any{"pull_request": nil}, workflow.On)
	if name == "github" {
		require.Equal(t, map[string]string{"contents": "read"}, workflow.Permissions)
	}
	require.NotContains(t, string(text), "secrets.")
	for _, step := range workflow.Jobs["preview"].Steps {
		require.Empty(t, step.Uses, "an action of others is not pinned here")
		require.NotContains(t, step.Run, "${{", "a text of the change could be a part of the script")
		if step.Name != "Install" {
			out = append(out, step.Run)
		}
	}
	return out
}

// hostileServer has a repository whose policy wants two replicas, and a change of somebody who wants to get around it.
func hostileServer(t *testing.T, change string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	repo := gittest.OpenRepo(t, filepath.Join(dir, "team", "workers.git"))
	require.NoError(t, os.MkdirAll(filepath.Dir(repo.Dir), 0o755))
	repo.Git("init", "-q", "--bare", "--initial-branch=main")
	spec := func(image, replicas string) string {
		return "apiVersion: temporal.io/v1alpha1\nkind: WorkerDeployment\nmetadata: {name: checkout, namespace: payments}\nspec:\n  replicas: " + replicas +
			"\n  workerOptions: {connectionRef: {name: production}, temporalNamespace: payments}\n  rollout: {strategy: AllAtOnce}\n" +
			"  template: {spec: {containers: [{name: worker, image: \"" + image + "\", env: [{name: X, value: \"```\\n::add-mask::x\\n$(env)\"}]}]}}\n"
	}
	repo.Commit(gittest.Commit{Write: map[string]string{
		"rampart.yaml": "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec:\n  environments: [{name: prod, specs: [\"workers/**\"], " +
			"output: {path: deploy}, policies: [\"policies/*.rego\"]}]\n",
		"policies/two.rego": "package rampart.spec\n\ndeny contains {\"rule\": \"acme.replicas\", \"msg\": \"two or more\"} if input.deployment.spec.replicas < 2\n",
		"workers/connection.yaml": "apiVersion: temporal.io/v1alpha1\nkind: Connection\nmetadata: {name: production, namespace: payments}\n" +
			"spec: {hostPort: \"temporal:7233\"}\n",
		"workers/checkout.yaml": spec("registry.example.com/checkout:v1", "2"),
	}})
	repo.Commit(gittest.Commit{Branch: "attack", Parent: "main", Message: "::stop-commands::x\n\n$(env)",
		Write: map[string]string{
			"rampart.yaml":          "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec: {environments: [{name: prod, specs: [\"workers/**\"], output: {path: deploy}}]}\n",
			"policies/two.rego":     "package rampart.spec\n\ndeny contains {\"rule\": \"a.b\", \"msg\": opa.runtime().env.TOKEN} if true\n",
			"workers/checkout.yaml": spec("registry.example.com/checkout:v2", "1"),
			"workers/::error::@everyone `env` \x01.yaml": "kind: WorkerDeployment\napiVersion: temporal.io/v1alpha1\n" +
				"metadata: {name: \"::warning::@all\", namespace: payments}\nspec: {\"::set-output name=x::y\": \"$(touch pwned)\"}\n",
			".github/workflows/rampart-preview.yml": "on: pull_request_target\n", ".gitlab-ci.yml": "x: {script: [env]}\n", ".gitattributes": "* filter=evil\n",
		},
		Exec:  map[string]string{"rampart": "#!/bin/sh\ntouch pwned\nenv\n", "repo.git/hooks/post-checkout": "#!/bin/sh\ntouch pwned\n"},
		Links: map[string]string{"workers/passwd.yaml": "/etc/passwd", "workers/up": "../../../..", "deploy": "/"}})
	repo.Git("update-ref", change, "attack")
	return dir
}

// runCI runs the steps of an example as the platform does, and gives what they printed and how the last one ended.
func runCI(t *testing.T, name, server, path string) (here, log string, code int) {
	t.Helper()
	p := platforms[name]
	here = t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(here, "temp"), 0o755))
	for _, step := range p.steps(t, name) {
		require.Zero(t, code, "%s", log)
		cmd := exec.CommandContext(t.Context(), "bash", "-e", "-c", step)
		cmd.Dir = here
		cmd.Env = append(gittest.Env(), "PATH="+path, "HOME="+here, "SOME_SECRET=very-secret")
		for _, v := range p.variables {
			cmd.Env = append(cmd.Env, strings.NewReplacer("@SERVER@", server, "@HERE@", here).Replace(v))
		}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			code = ended.ExitCode()
		} else {
			require.NoError(t, err)
		}
		log += out.String()
	}
	return here, log, code
}

// The example of each platform runs against the change of somebody who wants to get around what judges it, and at what
// the job has.
func TestCIExamples(t *testing.T) {
	testneed.Plain(t)
	for name, p := range platforms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := hostileServer(t, p.change)
			here, log, code := runCI(t, name, server, os.Getenv("PATH"))
			shown := log
			if p.result != "" {
				text, err := os.ReadFile(filepath.Join(here, p.result))
				require.NoError(t, err)
				require.LessOrEqual(t, len(text), 65_536)
				shown = string(text)
			}
			require.Equal(t, cmdutil.ExitFailure, code, "the change has errors, too:\n%s", log)
			require.Contains(t, shown, "acme.replicas", "the base's policy judges:\n%s", log)
			require.Contains(t, shown, "policies/two.rego")
			for _, never := range []string{"very-secret", "root:x:", "a.b:"} {
				require.NotContains(t, log+shown, never)
			}
			for line := range strings.Lines(log) {
				command := strings.HasPrefix(strings.TrimSpace(line), "::")
				require.False(t, command && !p.commands, "a command of the change: %s", line)
				if command {
					require.Regexp(t, `^::(error|warning|notice) (file=[^,:]*,)?(line=\d+,)?(col=\d+,)?title=[^,:]*::`, line)
				}
			}
			require.NoFileExists(t, filepath.Join(here, "pwned"))
			require.NoError(t, filepath.WalkDir(here, func(file string, _ os.DirEntry, err error) error {
				require.NotContains(t, []string{"checkout.yaml", "pwned", "post-checkout"}, filepath.Base(file), "nothing of the change is on disk")
				return err
			}))
		})
	}
}

// What runs in place of rampart has nothing of the job, and no network where the machine lets it be taken away.
func TestCIExamplesAreSealed(t *testing.T) {
	testneed.Plain(t)
	if err := exec.CommandContext(t.Context(), "unshare", "-rn", "true").Run(); err != nil {
		t.Skip("this machine lets nobody make a network of their own (unshare -rn): the examples use another way then")
	}
	for name, p := range platforms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spy := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(spy, "rampart"), []byte("#!/bin/sh\nenv\nsed 's/^/net /' /proc/net/dev\n"), 0o755))
			here, log, code := runCI(t, name, hostileServer(t, p.change), spy+":"+os.Getenv("PATH"))
			require.Zero(t, code, log)
			if p.result != "" {
				text, err := os.ReadFile(filepath.Join(here, p.result))
				require.NoError(t, err)
				log += string(text)
			}
			require.Contains(t, log, "net     lo:")
			for line := range strings.Lines(log) {
				if rest, ok := strings.CutPrefix(line, "net "); ok && strings.Contains(rest, ":") {
					require.True(t, strings.HasPrefix(strings.TrimSpace(rest), "lo:"), "there is a network: %s", line)
				}
				name, _, isVariable := strings.Cut(line, "=")
				if isVariable && !strings.HasPrefix(line, "net ") {
					require.Contains(t, []string{"PATH", "HOME", "PWD", "SHLVL", "_", "OLDPWD"}, name)
				}
			}
		})
	}
}
