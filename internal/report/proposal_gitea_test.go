package report

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/giteatest"
)

func TestMain(m *testing.M) { os.Exit(giteatest.Main(m)) }

// TestGiteaShowsPullRequests: on a real Gitea, nobody is told and nothing is linked because of what others wrote, tables and folds
// are what they are meant to be, and diagrams are left to the browser. The same text by itself would have done all of that.
func TestGiteaShowsPullRequests(t *testing.T) {
	server := giteatest.Start(t)
	bot, team := server.User(t, "bot"), server.User(t, "team")
	repo := server.Repository(t, bot.Login)
	repo.Collaborators(t, team)
	client := bot.Client(t)
	issue, _, err := client.CreateIssue(repo.Owner, repo.Name, sdk.CreateIssueOption{Title: "an issue"})
	require.NoError(t, err)
	text := "@" + team.Login + " fixes #1 closes " + repo.Owner + "/" + repo.Name + "#1 " + repo.URL() + "/issues/1 ![i](" + repo.URL() + "/i.png)\n\n# x\n" + evil
	open := func(branch, title, body string) string {
		repo.Commit(t, bot, giteatest.Commit{Branch: branch, From: "main", Path: branch + ".txt", Text: "x"})
		_, _, err := client.CreatePullRequest(repo.Owner, repo.Name, sdk.CreatePullRequestOption{Head: branch, Base: "main", Title: title, Body: body})
		require.NoError(t, err)
		html, _, err := client.RenderMarkdown(sdk.MarkdownOption{Text: body, Mode: "comment", Context: repo.Owner + "/" + repo.Name})
		require.NoError(t, err)
		return html
	}
	told := func() []string {
		var out []string
		list, _, err := team.Client(t).ListNotifications(sdk.ListNotificationOptions{})
		require.NoError(t, err)
		for _, n := range list {
			out = append(out, n.Subject.Title)
		}
		return out
	}
	linked := func() []string {
		var out []string
		list, _, err := client.ListIssueTimeline(repo.Owner, repo.Name, issue.Index, sdk.ListIssueCommentOptions{})
		require.NoError(t, err)
		for _, c := range list {
			out = append(out, c.Type)
		}
		return out
	}
	r := spoiltBy(text)
	title, body := r.Title(), r.Body()
	html := open("ours", title, body)
	tags := map[string]bool{}
	for _, m := range regexp.MustCompile(`<([a-z0-9]+)`).FindAllStringSubmatch(html, -1) {
		tags[m[1]] = true
	}
	require.Equal(t, map[string]bool{"p": true, "strong": true, "code": true, "pre": true, "div": true, "details": true, "summary": true,
		"table": true, "thead": true, "tbody": true, "tr": true, "th": true, "td": true}, tags)
	require.Equal(t, len(diagrams(body)), strings.Count(html, "language-mermaid"))

	// What is told comes a little later, in the order in which it happened: with the second it is known of the first.
	raw := open("theirs", "theirs", text)
	require.Contains(t, raw, "<a ")
	require.Contains(t, raw, "<img ")
	require.Eventually(t, func() bool { return len(told()) > 0 && len(linked()) > 0 }, time.Minute, 50*time.Millisecond)
	require.Equal(t, []string{"theirs"}, told())
	require.Equal(t, []string{"pull_ref"}, linked(), "once, by the second")
}
