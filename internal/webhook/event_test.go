package webhook

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is surely about something else does not wake the bot; what may be about us does.
func TestWhatMatters(t *testing.T) {
	const yes = ""
	otherRepository, noBranch, otherBranch := `it is about another repository, "team/other"`, "it is about no branch", `it is about another branch, "feature"`
	noProposal := `it is about a pull request that is not a proposal, of branch "feature"`
	for name, c := range map[string]struct {
		header, event, body, want string
	}{
		"specs":                        {"X-GitHub-Event", "push", push("team/workers", "refs/heads/main"), yes},
		"output":                       {"X-GitHub-Event", "push", push("team/workers", "refs/heads/deploy"), yes},
		"proposal":                     {"X-GitHub-Event", "push", push("team/workers", "refs/heads/rampart/prod/shop/checkout"), yes},
		"other branch":                 {"X-GitHub-Event", "push", push("team/workers", "refs/heads/feature"), otherBranch},
		"nearly ours":                  {"X-GitHub-Event", "push", push("team/workers", "refs/heads/mainly"), `it is about another branch, "mainly"`},
		"no proposal":                  {"X-GitHub-Event", "push", push("team/workers", "refs/heads/ramparts"), `it is about another branch, "ramparts"`},
		"tag":                          {"X-GitHub-Event", "push", push("team/workers", "refs/tags/main"), noBranch},
		"other ref":                    {"X-GitHub-Event", "push", push("team/workers", "refs/rampart/decisions"), noBranch},
		"other repository":             {"X-GitHub-Event", "push", push("team/other", "refs/heads/main"), otherRepository},
		"end of its name":              {"X-GitHub-Event", "push", push("team/more-workers", "refs/heads/main"), `it is about another repository, "team/more-workers"`},
		"upper case":                   {"X-GitHub-Event", "push", push("Team/Workers", "refs/heads/main"), yes},
		"deleted branch":               {"X-Gitea-Event", "delete", `{"ref":"deploy","ref_type":"branch"}`, yes},
		"deleted tag":                  {"X-Gitea-Event", "delete", `{"ref":"main","ref_type":"tag"}`, noBranch},
		"created branch":               {"X-Gitea-Event", "create", `{"ref":"feature","ref_type":"branch"}`, otherBranch},
		"nothing said":                 {"X-GitHub-Event", "push", `{}`, yes},
		"proposal opened":              {"X-GitHub-Event", "pull_request", pull("team/workers", "rampart/prod/shop/checkout"), yes},
		"proposed commits closed":      {"X-GitHub-Event", "pull_request", pull("team/workers", "rampart-output/prod"), yes},
		"proposed commits reviewed":    {"X-GitHub-Event", "pull_request_review", pull("team/workers", "rampart-output/prod"), yes},
		"proposed commits pushed to":   {"X-GitHub-Event", "push", push("team/workers", "refs/heads/rampart-output/prod"), yes},
		"gitlab, proposed commits":     {"X-Gitlab-Event", "Merge Request Hook", gitlabMerge("team/workers", "rampart-output/prod"), yes},
		"person's pull request":        {"X-GitHub-Event", "pull_request", pull("team/workers", "feature"), noProposal},
		"proposal of another":          {"X-GitHub-Event", "pull_request", pull("team/other", "rampart/prod/shop/checkout"), otherRepository},
		"pull request, nothing said":   {"X-GitHub-Event", "pull_request", `{}`, yes},
		"rejected":                     {"X-Gitea-Event", "pull_request_rejected", pull("team/workers", "rampart/x"), yes},
		"ping":                         {"X-GitHub-Event", "ping", `{"zen":"Keep it logically awesome.","repository":{"full_name":"team/workers"}}`, `nothing depends on an event "ping"`},
		"issue":                        {"X-GitHub-Event", "issues", `{}`, `nothing depends on an event "issues"`},
		"unheard of":                   {"X-GitHub-Event", "refs/heads/main", `{}`, `nothing depends on an event "refs/heads/main"`},
		"gitlab push":                  {"X-Gitlab-Event", "Push Hook", gitlabPush("team/workers", "refs/heads/main"), yes},
		"gitlab other":                 {"X-Gitlab-Event", "Push Hook", gitlabPush("team/other", "refs/heads/main"), otherRepository},
		"gitlab branch":                {"X-Gitlab-Event", "Push Hook", gitlabPush("team/workers", "refs/heads/feature"), otherBranch},
		"gitlab tag":                   {"X-Gitlab-Event", "Tag Push Hook", gitlabPush("team/workers", "refs/tags/v1"), `nothing depends on an event "Tag Push Hook"`},
		"gitlab merge":                 {"X-Gitlab-Event", "Merge Request Hook", gitlabMerge("team/workers", "rampart/x"), yes},
		"gitlab other merge":           {"X-Gitlab-Event", "Merge Request Hook", gitlabMerge("team/workers", "feature"), noProposal},
		"gitlab note":                  {"X-Gitlab-Event", "Note Hook", `{"object_kind":"note"}`, `nothing depends on an event "Note Hook"`},
		"gitlab, the server's push":    {"X-Gitlab-Event", "System Hook", `{"event_name":"push","ref":"refs/heads/feature"}`, otherBranch},
		"gitlab, the server's merge":   {"X-Gitlab-Event", "System Hook", gitlabMerge("team/workers", "feature"), noProposal},
		"gitlab, the server's update":  {"X-Gitlab-Event", "System Hook", `{"event_name":"repository_update","project":{"path_with_namespace":"team/workers"}}`, yes},
		"gitlab, the server's other":   {"X-Gitlab-Event", "System Hook", `{"event_name":"user_create"}`, `nothing depends on an event "System Hook"`},
		"gitlab, the server's nothing": {"X-Gitlab-Event", "System Hook", `{}`, `nothing depends on an event "System Hook"`},
		"anybody":                      {"X-Nothing", "", ``, yes},
		"anybody, other branch":        {"X-Nothing", "", `{"ref":"refs/heads/feature"}`, otherBranch},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch{"team/workers", []string{"rampart/", "rampart-output/"}, func(b string) bool { return b == "main" || b == "deploy" }}
			h := http.Header{}
			h.Set(c.header, c.event)
			require.Equal(t, c.want, w.boring(eventOf(h, []byte(c.body))))
		})
	}
}

// The repository is compared by its path: forges are reached by several names, and may be below a path.
func TestSamePath(t *testing.T) {
	for _, c := range []struct {
		ours, said string
		want       bool
	}{
		{"team/workers", "team/workers", true},
		{"git/team/workers", "team/workers", true},
		{"group/team/workers", "group/team/workers", true},
		{"team/workers", "group/team/workers", false},
		{"steam/workers", "team/workers", false},
		{"team/workers", "team/worker", false},
	} {
		require.Equal(t, c.want, samePath(c.ours, c.said), "%s %s", c.ours, c.said)
	}
	none := watch{"", []string{"rampart/", "rampart-output/"}, func(string) bool { return true }}
	require.Empty(t, none.boring(eventOf(http.Header{}, []byte(push("any/thing", "refs/heads/x")))), "one on disk has no name")
}
