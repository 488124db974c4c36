package cluster

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A pipeline applies each commit of the bot with kubectl, and waits for the status, which kubectl applies too.
func TestKubectlApplies(t *testing.T) {
	d := deliver(t, gitHTTP(t))
	d.push("worker:v1")
	d.bot((*delivery).byKustomize)
	commands := documented(t, "console", "kubectl apply --server-side -k")
	ctx, stop := context.WithCancel(t.Context())
	applied := make(chan struct{})
	go func() { // the pipeline
		defer close(applied)
		tip := ""
		for ctx.Err() == nil {
			if now := d.host.repo.Tip("main"); now != tip && strings.Contains(d.host.repo.Git("ls-tree", "--name-only", now), "deploy") {
				tip = now
				clone := t.TempDir()
				d.git("clone", "-q", d.host.repo.Dir, clone)
				_, _ = d.server.kubectl(t, "", "apply", "--server-side", "-k", filepath.Join(clone, "deploy")) // again with the next commit
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond): // until it looks again
			}
		}
	}()
	t.Cleanup(func() { stop(); <-applied })
	d.ready("v1")
	require.Contains(t, d.commands(commands), "condition met")
	d.server.await(t, "v1 True", "get", "-n", "payments", "twd", "checkout", "-o", `jsonpath={.status.currentVersion.buildID} {.status.conditions[?(@.type=="Ready")].status}`)
	require.Empty(t, d.commands("kubectl diff --server-side -k deploy"), "nothing differs from what Git says")
	d.push("worker:v2")
	d.ready("v2")
	require.Contains(t, d.commands(commands), "condition met")
}
