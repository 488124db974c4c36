package gitlab

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// Which titles are those of drafts.
func TestDraftMarksAreCutFromTitles(t *testing.T) {
	for title, want := range map[string]string{
		"Draft: ramp": "ramp", "draft:ramp": "ramp", "[Draft] ramp": "ramp", "(Draft) ramp": "ramp", "WIP: ramp": "ramp", "Drafty: ramp": "Drafty: ramp", "": "",
	} {
		require.Equal(t, want, forge.WithoutMark(title, draftMarks...), title)
	}
}

// No line is a command, and what is read is what was written.
func TestCommandsOfGitLabAreEscaped(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "plain /merge": "plain /merge", "/merge": `\/merge`, "a\n/close\n\t /merge now\n": "a\n\\/close\n\t \\/merge now\n", "\r\n/close": "\r\n\\/close",
	} {
		require.Equal(t, want, inert(text))
		require.Equal(t, text, plain(want))
	}
}

// What GitLab says is told whichever way it says it.
func TestMessagesOfGitLabInAllForms(t *testing.T) {
	for body, want := range map[string]string{
		`{"message": "404 Not found"}`: "404 Not found", `{"message": ["a", "b"]}`: "a: b", `<html>`: "<html>",
		`{"message": {"title": ["is too long", "is odd"], "base": ["x"]}}`: "base x: title is too long, is odd",
		`{"error": "insufficient_scope", "error_description": "more"}`:     "insufficient_scope: more",
	} {
		require.Equal(t, want, said([]byte(body)))
	}
}
