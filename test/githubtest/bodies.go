package githubtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/test/forgetest"
)

// shape is how much of a pull request is told.
type shape int

const (
	simple shape = iota + 1 // in lists
	whole
)

func pull(c *forgetest.Call, p *forgetest.Pull, much shape) map[string]any {
	headRepo, headOwner := repository(c), c.Owner
	if p.Fork {
		headRepo, headOwner = map[string]any{"id": repoID + 1, "name": c.Name,
			"full_name": c.Reader.Login + "/" + c.Name}, c.Reader.Login
	}
	state := "open"
	if p.State != forgetest.Open {
		state = "closed"
	}
	body := map[string]any{
		"id": 1000 + p.Number, "node_id": nodeID(p), "number": p.Number, "state": state, "title": p.Title,
		"body": p.Body, "draft": p.Draft,
		"html_url": fmt.Sprintf("%s/%s/%s/pull/%d", c.Server.URL, c.Owner, c.Name, p.Number), "user": user(p.Author),
		"labels":     labels(p.Labels),
		"created_at": p.Created, "updated_at": p.Updated, "closed_at": moment(p.Ended), "merged_at": nil,
		"merge_commit_sha": tried(p),
		"head": map[string]any{"label": headOwner + ":" + p.Head, "ref": p.Head, "sha": p.HeadCommit,
			"repo": headRepo, "user": user(c.Person)},
		"base": map[string]any{"label": c.Owner + ":" + p.Base, "ref": p.Base, "sha": c.Tip(p.Base),
			"repo": repository(c), "user": user(c.Person)},
		"requested_reviewers": users(p.Reviewers), "requested_teams": teams(p.Teams), "auto_merge": automatic(p),
		"author_association": "MEMBER",
	}
	if p.State == forgetest.Merged {
		body["merged_at"] = p.Ended
	}
	if much == whole {
		body["merged"], body["merged_by"] = p.State == forgetest.Merged, nil
		if p.State == forgetest.Merged {
			body["merged_by"] = user(p.ClosedBy)
		}
		body["mergeable"], body["mergeable_state"] = mergeable(c, p)
	}
	return body
}

// tried is the merge that GitHub tries for each pull request that is open, which stays when it is closed.
func tried(p *forgetest.Pull) any {
	if p.State == forgetest.Merged {
		return p.MergeCommit
	}
	return "7e57" + p.HeadCommit[4:]
}

func mergeable(c *forgetest.Call, p *forgetest.Pull) (can any, state string) {
	if p.State != forgetest.Open || !c.Looked(p) {
		return nil, "unknown"
	}
	switch c.Blocked(p) {
	case "":
		if slices.ContainsFunc(c.Statuses(p.HeadCommit), func(s forgetest.Status) bool {
			return s.State != "success"
		}) {
			return true, "unstable"
		}
		return true, "clean"
	case forgetest.BlockedConflict:
		return false, "dirty"
	case forgetest.BlockedDraft:
		return true, "draft"
	}
	return true, "blocked"
}

func nodeID(p *forgetest.Pull) string { return fmt.Sprintf("PR_%d", p.Number) }

func automatic(p *forgetest.Pull) any {
	if p.Auto == nil {
		return nil
	}
	return map[string]any{"enabled_by": user(p.Auto.By), "merge_method": p.Auto.Method, "commit_title": p.Title,
		"commit_message": p.Body}
}

func moment(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

func user(u *forgetest.User) any {
	if u == nil {
		return map[string]any{"id": 10137, "login": "ghost", "type": "User"}
	}
	return map[string]any{"id": u.ID, "login": u.Login, "type": "User"}
}

func users(all []*forgetest.User) []any {
	list := []any{}
	for _, u := range all {
		list = append(list, user(u))
	}
	return list
}

func teams(all []string) []any {
	list := []any{}
	for _, name := range all {
		list = append(list, map[string]any{"name": name, "slug": name})
	}
	return list
}

func labels(names []string) []any {
	list := []any{}
	for _, name := range names {
		list = append(list, label(name))
	}
	return list
}

func label(name string) map[string]any {
	return map[string]any{"id": 7, "node_id": "L", "url": docs, "name": name, "color": "5b7083", "default": false,
		"description": ""}
}

func repository(c *forgetest.Call) map[string]any {
	return map[string]any{
		"id": repoID, "name": c.Name, "full_name": c.Owner + "/" + c.Name, "private": c.Rules().Private,
		"owner": map[string]any{"id": 5, "login": c.Owner, "type": "Organization"},
	}
}
