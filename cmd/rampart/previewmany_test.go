package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/apptest"
	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// One change may have previewLimit worker deployments; tooMany is one more.
const (
	previewLimit = 1000
	tooMany      = previewLimit + 1
)

// manyChanged is a repository whose HEAD adds too many worker deployments to main.
func manyChanged(t *testing.T) *gittest.Repo {
	t.Helper()
	repo := gittest.NewBareRepo(t)
	repo.Commit(gittest.Commit{Branch: "main", Write: map[string]string{
		"rampart.yaml": "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec:\n  environments:\n    - {name: prod, specs: [\"workers/**\"], output: {path: deploy}}\n",
		"workers/connection.yaml": "apiVersion: temporal.io/v1alpha1\nkind: TemporalConnection\nmetadata: {name: temporal, namespace: shop}\n" +
			"spec: {hostPort: \"temporal.example.com:7233\"}\n",
	}})
	specs := map[string]string{}
	for i := range tooMany {
		specs[fmt.Sprintf("workers/%04d.yaml", i)] = fmt.Sprintf(`apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata: {name: c%04d, namespace: shop}
spec:
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: shop}
  rollout: {strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 10m}]}
  template: {spec: {containers: [{name: worker, image: "app:v1"}]}}
`, i)
	}
	repo.Commit(gittest.Commit{Branch: "change", Parent: "refs/heads/main", Write: specs})
	return repo
}

// previewProcess is rampart as a process of its own, which previews the change in a folder of its own for what is
// temporary.
func previewProcess(t *testing.T, repo *gittest.Repo) (cmd *exec.Cmd, out, said *bytes.Buffer) {
	t.Helper()
	name, err := exec.LookPath("rampart") // testscript's
	require.NoError(t, err)
	out, said = new(bytes.Buffer), new(bytes.Buffer)
	cmd = exec.Command(name, "preview", "-C", repo.Dir, "--base", "main", "--head", "change", "-o", "json")
	cmd.Env = append(gittest.Env(), "HOME="+t.TempDir(), "TMPDIR="+t.TempDir(), "PATH="+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = out, said
	return cmd, out, said
}

// filesBelow are the names of all files below some folders.
func filesBelow(t *testing.T, dirs ...string) (names []string) {
	t.Helper()
	for _, dir := range dirs {
		require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error { names = append(names, path); return err }))
	}
	return names
}

// A change of more worker deployments than are previewed ends with an error, and says which were looked at.
func TestPreviewOfTooMany(t *testing.T) {
	testneed.Long(t)
	cmd, out, said := previewProcess(t, manyChanged(t))
	err := cmd.Run()
	var ended *exec.ExitError
	require.ErrorAs(t, err, &ended, said.String())
	require.Equal(t, cmdutil.ExitFailure, ended.ExitCode())
	var got report.Preview
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Equal(t, report.PreviewBroken, got.Outcome)
	require.Len(t, got.Deployments, previewLimit)
	require.Equal(t, []string{"shop/c0000", "shop/c0999"}, []string{got.Deployments[0].Name, got.Deployments[previewLimit-1].Name})
	require.Len(t, got.Problems, 1)
	require.Equal(t, "workers/1000.yaml", got.Problems[0].File)
	require.Equal(t, "the change touches 1001 worker deployments; the first 1000 are previewed: make several changes of it", got.Problems[0].Message)
}

// A signal ends a preview wherever it is, with the exit code that all commands have, and nothing of it stays.
func TestPreviewIsStopped(t *testing.T) {
	repo := manyChanged(t)
	for _, c := range []struct {
		signal syscall.Signal
		after  time.Duration // that the process computed
		code   int
	}{
		{syscall.SIGINT, 500 * time.Millisecond, 130}, {syscall.SIGTERM, 1500 * time.Millisecond, 143},
	} {
		cmd, out, said := previewProcess(t, repo)
		home, tmp := cmd.Env[len(cmd.Env)-3], cmd.Env[len(cmd.Env)-2]
		before := filesBelow(t, repo.Dir, strings.TrimPrefix(home, "HOME="), strings.TrimPrefix(tmp, "TMPDIR="))
		require.NoError(t, cmd.Start())
		for computed(t, cmd.Process.Pid) < c.after { // what it is at then is another on each machine
			time.Sleep(time.Millisecond)
		}
		require.NoError(t, cmd.Process.Signal(c.signal))
		var ended *exec.ExitError
		require.ErrorAs(t, cmd.Wait(), &ended, "it ended by itself")
		require.Equal(t, c.code, ended.ExitCode(), said.String())
		require.Empty(t, out.String())
		require.Regexp(t, `^rampart: stopped by (interrupt|terminated)\n$`, said.String())
		require.Equal(t, before, filesBelow(t, repo.Dir, strings.TrimPrefix(home, "HOME="), strings.TrimPrefix(tmp, "TMPDIR=")))
	}
}

// What is stopped asks nothing more: neither about other specs, nor policies about rollouts.
func TestPreviewStopsAtOnce(t *testing.T) {
	a, _ := apptest.New(t)
	repo := manyChanged(t)
	ctx, cancel := context.WithCancel(t.Context())
	now, looked := a.Now, 0
	a.Now = func() time.Time {
		if looked++; looked == 40 {
			cancel()
		}
		return now()
	}
	root := newRoot(a)
	root.SetArgs([]string{"preview", "-C", repo.Dir, "--base", "main", "--head", "change"})
	err := root.ExecuteContext(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 40, looked)
}

// computed is how long a process computed until now.
func computed(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("there is no /proc to see what a process does")
	}
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	const hertz = 100 // of what the kernel tells; see proc(5)
	var ticks int
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		require.NoError(t, err)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / hertz
}
