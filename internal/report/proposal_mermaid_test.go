package report

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
)

// diagrams are the Mermaid diagrams of a body.
func diagrams(body string) []string {
	var out []string
	for _, m := range regexp.MustCompile("(?s)```mermaid\n(.*?)```\n").FindAllStringSubmatch(body, -1) {
		out = append(out, m[1])
	}
	return out
}

// TestMermaidReadsDiagrams: Mermaid's own parsers, an older and a newer one, take every diagram, and find the nodes
// that are meant.
func TestMermaidReadsDiagrams(t *testing.T) {
	folder := filepath.Join("..", "..", "test", "mermaid")
	node, err := exec.LookPath("node")
	if err != nil {
		testneed.Missing(t, "Mermaid's parsers need node, which is not installed (Debian: apt-get install nodejs npm, then: make mermaid)")
	}
	if _, err := os.Stat(filepath.Join(folder, "node_modules")); err != nil {
		testneed.Missing(t, "Mermaid's parsers are not installed: make mermaid")
	}
	var all []string
	for _, r := range pullRequests() {
		body := r.Body()
		found := diagrams(body)
		require.NotEmpty(t, found)
		all = append(all, found...)
	}
	in, err := json.Marshal(append(all, "flowchart LR\n    n1[\"broken"))
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), node, "parse.mjs")
	cmd.Dir, cmd.Stdin = folder, bytes.NewReader(in)
	var failure strings.Builder
	cmd.Stderr = &failure
	out, err := cmd.Output()
	require.NoError(t, err, failure.String())
	var answers []struct {
		Parser, Diagram, Error string
		Nodes                  []string
	}
	require.NoError(t, json.Unmarshal(out, &answers))
	require.Len(t, answers, 2*(len(all)+1))
	for i, a := range answers {
		if i >= 2*len(all) {
			require.NotEmpty(t, a.Error, "a broken one is refused")
			continue
		}
		require.Empty(t, a.Error, "%s: %s", a.Parser, a.Diagram)
		var want []string
		for _, m := range regexp.MustCompile(`(?m)^    n\d+\["(.*)"\]$`).FindAllStringSubmatch(a.Diagram, -1) {
			want = append(want, m[1])
		}
		require.ElementsMatch(t, want, a.Nodes, "%s: %s", a.Parser, a.Diagram)
	}
}
