package compose

import (
	"encoding/json"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

var ada = rollout.GitContext{
	Commit: strings.Repeat("c0ffee00", 5), Author: "Ada Lovelace <ada@example.com>", When: time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC),
	Message: "Roll out checkout v2\n\nIt charges <once> & no more.\n\nArgocd-reference-commit-sha: abcdef0\nSigned-off-by: Ada\n",
}

// What a commit says is made fit to be read by machines: one line each, in their forms, or left out.
func TestDryCommit(t *testing.T) {
	with := func(author, message string) dryCommit {
		origin := ada
		origin.Author, origin.Message = author, message
		return dryCommitOf(origin, "")
	}
	for author, want := range map[string]string{
		"Ada <ada@example.com>":       "Ada <ada@example.com>",
		"Zoë (CI) <zoe@example.com>":  "Zoë (CI) <zoe@example.com>",
		"J. Doe, Jr. <j@example.com>": `"J. Doe, Jr." <j@example.com>`,
		"nobody <>":                   "",
		"bot <no address>":            "",
		"a\n\nb <a@example.com>":      "a b <a@example.com>",
	} {
		require.Equal(t, want, with(author, "x").Author, author)
	}
	all := with("", "subject\u202e\n\nbody\u202e\n\nArgocd-reference-commit-body: \"a  b\\nArgocd-reference-commit-sha: 1\"\n"+
		"Argocd-reference-commit-author: Code <code@example.com>\nArgocd-reference-commit-date: 2026-01-01T00:00:00Z\n"+
		"Argocd-reference-commit-subject: code\nArgocd-reference-commit-repourl: https://git.example.com/code\n"+
		"Argocd-reference-commit-other: x\nArgocd-reference-commit-body: no JSON\n")
	require.Equal(t, "subject\\u202e", all.Subject)
	require.Equal(t, "body\\u202e\n\nArgocd-reference-commit-other: x\nArgocd-reference-commit-body: no JSON", all.Body)
	require.Equal(t, []reference{{referencedCommit{Author: "Code <code@example.com>", Date: "2026-01-01T00:00:00Z", Subject: "code",
		Body: "a  b\nArgocd-reference-commit-sha: 1", RepoURL: "https://git.example.com/code"}}}, all.References)
	require.True(t, json.Valid([]byte(all.file())))

	long := with("", "x\n\n"+strings.Repeat("y", 1<<20))
	require.Len(t, []rune(long.Body), maxDryBody)
	for _, line := range strings.Split(strings.TrimSpace(long.trailers()), "\n") {
		require.True(t, strings.HasPrefix(line, "Argocd-reference-commit-"), line)
	}
	require.NotContains(t, with("", "").trailers(), "subject", "a commit that says nothing")
}

// Forges look for commands, mentions and references in messages: none of them is repeated in a commit of the bot.
func TestTrailersAreInert(t *testing.T) {
	origin := ada
	origin.Author = "Ada @team [skip ci] <ada@example.com>"
	origin.Message = "Roll out v2 [skip ci] ***NO_CI*** for @team, closes #12\n\n[ci skip] closes #13\n"
	dry := dryCommitOf(origin, "https://git.example.com/workers")
	require.Equal(t, `Argocd-reference-commit-author: "Ada ＠team [ skip ci]" <ada@example.com>
Argocd-reference-commit-date: 2026-03-01T11:00:00Z
Argocd-reference-commit-subject: Roll out v2 [ skip ci] * * *NO_CI* * * for ＠team, closes ＃12
Argocd-reference-commit-sha: c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00
Argocd-reference-commit-repourl: https://git.example.com/workers
`, dry.trailers())
	_, err := mail.ParseAddress(inertAuthor(dry.Author))
	require.NoError(t, err, "Argo CD reads it")
	require.Equal(t, "[ci skip] closes #13", dry.Body, "the file has it as it is")
	for _, author := range []string{`"x "@team`, "'@team", `"[skip ci]"@example.com`} {
		origin.Author = "Ada <" + author + ">"
		require.NotEmpty(t, dryCommitOf(origin, "").Author)
		require.NotContains(t, dryCommitOf(origin, "").trailers(), "author", "its address would be a mention")
	}
}
