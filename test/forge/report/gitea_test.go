package report_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/test/giteatest"
)

func TestMain(m *testing.M) { os.Exit(giteatest.Main(m)) }

// evil wants to be Markdown, HTML, a mention, a reference, a command and a link.
const evil = "`x` | y\n\n# Heading\n@team [a](http://e.example) ![i](http://e.example/i.png) <img src=x> fixes #12 GH-13 closes ABC-7 !5 - [ ] task\n```\n/merge\n</details>" +
	"\x1b[31m\u202e\u200b\"]; click n1 \"http://e.example\" \n%%{init: {}}%% end [skip ci] www.e.example $1 &2"

// by is a pull request in which others wrote a text wherever they can.
func by(text string) report.ProposalReport {
	of, now := rollout.Name{Namespace: text, Name: text}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ramp := rollout.Action{ID: "Ramp/v2", Kind: rollout.Ramp, BuildID: text, From: 5, To: 25, Step: 2, Steps: 3,
		Reason: text}
	finding := rollout.Finding{Package: "acme", Rule: text, Message: text, Location: text, Effect: rollout.RequireApproval}
	verdict := rollout.Verdict{Effect: rollout.RequireApproval, Findings: []rollout.Finding{finding}}
	asked := rollout.Held{Action: ramp, Verdict: verdict}
	version := func(id string) rollout.VersionObservation {
		return rollout.VersionObservation{BuildID: id, QueuesKnown: rollout.Yes, OpenPinned: rollout.Count{Reason: text},
			Queues: []rollout.TaskQueue{{Name: text, Type: rollout.QueueType(text)}}}
	}
	spec, recorded := new(v1alpha1.WorkerDeployment), new(v1alpha1.Routing)
	spec.Spec.Rollout = v1alpha1.RolloutStrategy{Strategy: v1alpha1.Progressive, Steps: []v1alpha1.RolloutStep{
		{RampPercentage: 5}, {RampPercentage: 25, Gate: &v1alpha1.Gate{WorkflowType: text}}, {RampPercentage: 50}}}
	recorded.Spec.Versions = []v1alpha1.RecordedVersion{{BuildID: text + "2"}, {BuildID: text}}
	recorded.Spec.SetAside = []v1alpha1.SetAside{{BuildID: text, Reason: text}}
	return report.ProposalReport{
		Snapshot: rollout.Snapshot{Now: now, Deployment: of, Limits: rollout.DefaultLimits(), Spec: spec,
			Facts:  map[string]rollout.Fact{text: {Error: text, Source: text}},
			Record: rollout.Record{Routing: recorded},
			Observation: rollout.Observation{At: now, Exists: rollout.Yes,
				Versions: []rollout.VersionObservation{version(text + "2"), version(text)},
				Routing: rollout.RoutingConfig{Current: text + "2", HasRamp: true, Ramping: text, Percentage: 5,
					PercentageChangedAt: now.Add(-time.Hour)}}},
		Proposal: rollout.Proposal{Actions: []rollout.Action{ramp},
			Target: &rollout.Target{BuildID: text, Status: rollout.StatusRamping, Attempt: 1}},
		Plan: rollout.Plan{Deployment: of, Environment: v1alpha1.Environment{Name: text}, Held: []rollout.Held{asked},
			Status: &v1alpha1.WorkerDeploymentStatus{
				CurrentVersion: &v1alpha1.VersionStatus{BuildID: text + "2", Status: "Current"},
				TargetVersion:  &v1alpha1.VersionStatus{BuildID: text, Status: "Ramping"}}},
		Asked: asked, Scope: v1alpha1.ScopeStep,
	}
}

// TestGiteaShowsPullRequests: on a real Gitea, what others wrote notifies no user and links nothing. Tables and folds
// are what they are meant to be, and diagrams are left to the browser. The same text by itself would have done all of
// that.
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
	r := by(text)
	title, body := r.Title(), r.Body()
	html := open("ours", title, body)
	tags := map[string]bool{}
	for _, m := range regexp.MustCompile(`<([a-z0-9]+)`).FindAllStringSubmatch(html, -1) {
		tags[m[1]] = true
	}
	require.Equal(t, map[string]bool{"p": true, "strong": true, "code": true, "pre": true, "div": true, "details": true, "summary": true,
		"table": true, "thead": true, "tbody": true, "tr": true, "th": true, "td": true}, tags)
	require.Equal(t, strings.Count(body, "```mermaid\n"), strings.Count(html, "language-mermaid"))

	// What is told comes a little later, in the order in which it happened: with the second it is known of the first.
	raw := open("theirs", "theirs", text)
	require.Contains(t, raw, "<a ")
	require.Contains(t, raw, "<img ")
	require.Eventually(t, func() bool { return len(told()) > 0 && len(linked()) > 0 }, time.Minute, 50*time.Millisecond)
	require.Equal(t, []string{"theirs"}, told())
	require.Equal(t, []string{"pull_ref"}, linked(), "once, by the second")
}
