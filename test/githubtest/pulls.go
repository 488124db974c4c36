package githubtest

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/test/forgetest"
)

func getPull(c *forgetest.Call) forgetest.Reply {
	return forgetest.Reply{Status: http.StatusOK, Body: pull(c, c.Pull(c.Number("pull_number")), whole)}
}

func listPulls(c *forgetest.Call) forgetest.Reply {
	state := cmp.Or(c.Query("state"), "open")
	head := c.Query("head")
	owner, branch, named := strings.Cut(head, ":")
	before := func(a, b *forgetest.Pull) int { return cmp.Compare(a.Number, b.Number) }
	if c.Query("sort") == "updated" {
		before = func(a, b *forgetest.Pull) int { return a.Updated.Compare(b.Updated) }
	}
	all := forgetest.Newest(c.Pulls(), func(p *forgetest.Pull) bool {
		from := c.Owner
		if p.Fork {
			from = c.Reader.Login
		}
		return (state == "all" || (state == "open") == (p.State == forgetest.Open)) &&
			(!named || from == owner && p.Head == branch) &&
			(c.Query("base") == "" || c.Query("base") == p.Base)
	}, before)
	if cmp.Or(c.Query("direction"), "desc") == "asc" {
		slices.Reverse(all)
	}
	page, header := forgetest.Page(c, all)
	list := []any{}
	for _, p := range page {
		list = append(list, pull(c, p, simple))
	}
	return forgetest.Reply{Status: http.StatusOK, Body: list, Header: header}
}

func createPull(c *forgetest.Call) forgetest.Reply {
	var o struct {
		Title, Body, Head, Base string
		Draft                   bool
	}
	c.Decode(&o)
	for field, branch := range map[string]string{"head": o.Head, "base": o.Base} {
		if c.Tip(branch) == "" {
			return invalid("PullRequest", field, "invalid", "")
		}
	}
	for _, p := range c.Pulls() {
		if p.State == forgetest.Open && p.Head == o.Head && p.Base == o.Base && !p.Fork && !c.Rules().Racy {
			return invalid("PullRequest", "", "custom", "A pull request already exists for "+c.Owner+":"+o.Head+".")
		}
	}
	if _, within := c.Git.Try("merge-base", "--is-ancestor", "refs/heads/"+o.Head, "refs/heads/"+o.Base); within {
		return invalid("PullRequest", "", "custom", "No commits between "+o.Base+" and "+o.Head)
	}
	p := c.Open(forgetest.Pull{Title: o.Title, Body: o.Body, Head: o.Head, Base: o.Base, Draft: o.Draft, Author: c.By})
	body := pull(c, p, whole)
	c.Forget(p) // it only begins to look
	return forgetest.Reply{Status: http.StatusCreated, Body: body}
}

func updatePull(c *forgetest.Call) forgetest.Reply {
	p := c.Pull(c.Number("pull_number"))
	var o struct{ Title, Body, State, Base *string }
	c.Decode(&o)
	if o.Title != nil {
		p.Title = *o.Title
	}
	if o.Body != nil {
		p.Body = *o.Body
	}
	c.Touch(p)
	if o.State != nil && *o.State == "closed" {
		c.Close(p, c.By)
	}
	return forgetest.Reply{Status: http.StatusOK, Body: pull(c, p, whole)}
}

func mergePull(c *forgetest.Call) forgetest.Reply {
	p := c.Pull(c.Number("pull_number"))
	var o struct {
		SHA    string
		Method string `json:"merge_method"`
	}
	c.Decode(&o)
	method := cmp.Or(o.Method, "merge")
	words := map[string]string{"merge": "Merge commits", "squash": "Squash merges", "rebase": "Rebase merges"}
	switch {
	case p.State != forgetest.Open:
		return refuse(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	case !c.MayMerge(c.By):
		return refuse(http.StatusForbidden, "You're not authorized to push to this branch.")
	case !slices.Contains(c.Rules().Methods, method):
		return refuse(http.StatusMethodNotAllowed, words[method]+" are not allowed on this repository.")
	case o.SHA != "" && o.SHA != p.HeadCommit:
		return refuse(http.StatusConflict, "Head branch was modified. Review and try the merge again.")
	}
	switch c.Blocked(p) {
	case forgetest.BlockedDraft:
		return refuse(http.StatusMethodNotAllowed, "Pull Request is still a draft")
	case forgetest.BlockedConflict:
		return refuse(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	case forgetest.BlockedCheck:
		return refuse(http.StatusMethodNotAllowed, `Required status check "`+c.Rules().Checks[0]+`" is expected.`)
	case forgetest.BlockedApprovals:
		return refuse(http.StatusMethodNotAllowed,
			"At least 1 approving review is required by reviewers with write access.")
	}
	if !c.Merge(p, c.By, method) {
		return refuse(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	}
	return forgetest.Reply{Status: http.StatusOK, Body: map[string]any{
		"sha": p.MergeCommit, "merged": true, "message": "Pull Request successfully merged",
	}}
}

// requestReviewers asks all or none.
func requestReviewers(c *forgetest.Call) forgetest.Reply {
	p := c.Pull(c.Number("pull_number"))
	var o struct {
		Reviewers []string
		Teams     []string `json:"team_reviewers"`
	}
	c.Decode(&o)
	var asked []*forgetest.User
	for _, login := range o.Reviewers {
		u := c.User(login)
		switch {
		case u == p.Author && u != nil:
			return refuse(http.StatusUnprocessableEntity, "Review cannot be requested from pull request author.")
		case u == nil || u.Guest:
			return refuse(http.StatusUnprocessableEntity,
				"Reviews may only be requested from collaborators. One or more of the users or teams "+
					"you specified is not a collaborator of the "+c.Owner+"/"+c.Name+" repository.")
		}
		asked = append(asked, u)
	}
	for _, team := range o.Teams {
		if !c.HasTeam(team) {
			return refuse(http.StatusUnprocessableEntity,
				"Could not resolve to a node with the global id of '"+team+"'.")
		}
	}
	p.Reviewers, p.Teams = withEach(p.Reviewers, asked), withEach(p.Teams, o.Teams)
	c.Touch(p)
	return forgetest.Reply{Status: http.StatusCreated, Body: pull(c, p, simple)}
}

// withEach adds to a list each element of more that is missing in it.
func withEach[T comparable](list, more []T) []T {
	for _, x := range more {
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

func listReviews(c *forgetest.Call) forgetest.Reply {
	p := c.Pull(c.Number("pull_number"))
	page, header := forgetest.Page(c, p.Reviews)
	list := []any{}
	for i, r := range page {
		list = append(list, map[string]any{
			"id": i + 1, "user": user(r.By), "body": "", "state": r.State, "commit_id": r.Commit, "submitted_at": r.At,
			"author_association": "MEMBER",
		})
	}
	return forgetest.Reply{Status: http.StatusOK, Body: list, Header: header}
}
