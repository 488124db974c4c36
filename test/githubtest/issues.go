package githubtest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/test/forgetest"
)

func getRepository(c *forgetest.Call) forgetest.Reply {
	body := repository(c)
	if c.By.Write { // others are not told
		allowed := func(method string) bool { return slices.Contains(c.Rules().Methods, method) }
		body["allow_merge_commit"], body["allow_squash_merge"], body["allow_rebase_merge"] = allowed("merge"),
			allowed("squash"), allowed("rebase")
		body["allow_auto_merge"] = !c.Rules().NoAuto
	}
	body["permissions"] = map[string]any{"admin": c.By.Admin, "push": c.By.Write, "pull": true}
	header := http.Header{}
	if token, _ := c.Token(strings.TrimPrefix(c.Request.Header.Get("Authorization"), "Bearer ")); token.Scopes != nil {
		header.Set("X-OAuth-Scopes", strings.Join(token.Scopes, ", "))
	}
	return forgetest.Reply{Status: http.StatusOK, Header: header, Body: body}
}

func getPermission(c *forgetest.Call) forgetest.Reply {
	u := c.User(c.Param("username"))
	if u == nil {
		return refuse(http.StatusNotFound, notFound)
	}
	level := "read"
	if u.Write {
		level = "write"
	}
	return forgetest.Reply{Status: http.StatusOK, Body: map[string]any{"permission": level, "role_name": level,
		"user": user(u)}}
}

// getCommit names no account where no account has the address.
func getCommit(c *forgetest.Call) forgetest.Reply {
	commit := c.Param("ref")
	if !c.Commit(commit) {
		return refuse(http.StatusUnprocessableEntity, "No commit found for SHA: "+commit)
	}
	body := map[string]any{"sha": commit, "node_id": "C", "parents": []any{}, "author": nil, "committer": nil}
	author, committer := c.People(commit)
	if author != nil {
		body["author"] = user(author)
	}
	if committer != nil {
		body["committer"] = user(committer)
	}
	return forgetest.Reply{Status: http.StatusOK, Body: body}
}

func getIssue(c *forgetest.Call) forgetest.Reply {
	p := c.Pull(c.Number("issue_number"))
	body := map[string]any{
		"id": 2000 + p.Number, "node_id": "I", "number": p.Number, "state": "open", "title": p.Title, "body": p.Body,
		"user":   user(p.Author),
		"labels": labels(p.Labels), "created_at": p.Created, "updated_at": p.Updated, "closed_at": moment(p.Ended),
		"closed_by": nil, "author_association": "MEMBER",
	}
	if p.State != forgetest.Open {
		body["state"], body["closed_by"] = "closed", user(p.ClosedBy)
	}
	return forgetest.Reply{Status: http.StatusOK, Body: body}
}

func createComment(c *forgetest.Call) forgetest.Reply {
	p := c.Pull(c.Number("issue_number"))
	var o struct{ Body string }
	c.Decode(&o)
	p.Comments = append(p.Comments, forgetest.Comment{By: c.By, Body: o.Body})
	c.Touch(p)
	now := c.Tick()
	return forgetest.Reply{Status: http.StatusCreated, Body: map[string]any{
		"id": len(p.Comments), "body": o.Body, "user": user(c.By), "created_at": now, "updated_at": now,
		"author_association": "MEMBER",
	}}
}

// same says whether two names are of one label: GitHub does not look at their case.
func same(name string) func(string) bool {
	return func(other string) bool { return strings.EqualFold(name, other) }
}

func addLabels(c *forgetest.Call) forgetest.Reply {
	p := c.Pull(c.Number("issue_number"))
	var o struct{ Labels []string }
	c.Decode(&o)
	for _, name := range o.Labels {
		if !c.HasLabel(name) {
			return invalid("Label", "name", "missing", "")
		}
		if !slices.ContainsFunc(p.Labels, same(name)) {
			p.Labels = append(p.Labels, name)
		}
	}
	c.Touch(p)
	return forgetest.Reply{Status: http.StatusOK, Body: labels(p.Labels)}
}

func createLabel(c *forgetest.Call) forgetest.Reply {
	var o struct{ Name, Color string }
	c.Decode(&o)
	if c.HasLabel(o.Name) {
		return invalid("Label", "name", "already_exists", "")
	}
	c.AddLabel(o.Name)
	return forgetest.Reply{Status: http.StatusCreated, Body: label(o.Name)}
}

func getLabel(c *forgetest.Call) forgetest.Reply {
	if !c.HasLabel(c.Param("name")) {
		return refuse(http.StatusNotFound, notFound)
	}
	return forgetest.Reply{Status: http.StatusOK, Body: label(c.Param("name"))}
}

func createStatus(c *forgetest.Call) forgetest.Reply {
	var o struct {
		State, Context, Description string
		URL                         string `json:"target_url"`
	}
	c.Decode(&o)
	commit := c.Param("sha")
	if !c.Commit(commit) {
		return refuse(http.StatusUnprocessableEntity, "No commit found for SHA: "+commit)
	}
	c.SetStatus(forgetest.Status{Commit: commit, Context: o.Context, State: o.State, Description: o.Description,
		URL: o.URL})
	now := c.Tick()
	return forgetest.Reply{Status: http.StatusCreated, Body: map[string]any{
		"created_at": now, "updated_at": now, "id": 1, "state": o.State, "context": o.Context,
		"description": o.Description, "target_url": o.URL, "creator": user(c.By),
	}}
}

// getStatuses is the combined status: the last one of each context.
func getStatuses(c *forgetest.Call) forgetest.Reply {
	commit := c.Param("ref")
	if !c.Commit(commit) {
		return refuse(http.StatusNotFound, "No commit found for SHA: "+commit)
	}
	all := c.Statuses(commit)
	page, header := forgetest.Page(c, all)
	list, at, now := []any{}, c.Server.URL+prefix+"/repos/"+c.Owner+"/"+c.Name, c.Tick()
	for i, st := range page {
		list = append(list, map[string]any{
			"url": at + "/statuses/" + commit, "avatar_url": nil, "id": i + 1, "node_id": "S", "state": st.State,
			"description": st.Description, "target_url": st.URL,
			"context": st.Context, "created_at": now, "updated_at": now,
		})
	}
	return forgetest.Reply{Status: http.StatusOK, Header: header, Body: map[string]any{
		"state": "pending", "statuses": list, "sha": commit, "total_count": len(all), "repository": repository(c),
		"commit_url": at + "/commits/" + commit, "url": at + "/commits/" + commit + "/status",
	}}
}

// listHooks tells those who administer the repository. To others they are not there.
func listHooks(c *forgetest.Call) forgetest.Reply {
	if !c.By.Admin {
		return refuse(http.StatusNotFound, notFound)
	}
	all := []any{}
	for i, h := range c.Rules().Hooks {
		last := map[string]any{"code": nil, "status": "unused", "message": nil}
		if h.Code != 0 {
			last = map[string]any{"code": h.Code, "status": "active", "message": http.StatusText(h.Code)}
		}
		all = append(all, map[string]any{"id": i + 1, "name": "web", "active": !h.Off, "events": h.Events,
			"last_response": last, "config": map[string]any{"url": h.URL, "content_type": "json", "insecure_ssl": "0"}})
	}
	page, header := forgetest.Page(c, all)
	return forgetest.Reply{Status: http.StatusOK, Header: header, Body: page}
}

const rulesetID = 42

// listRules are those of a ruleset that wants pull requests, and of one that forbids nothing which the bot does.
func listRules(c *forgetest.Call) forgetest.Reply {
	all := []any{map[string]any{"type": "deletion", "ruleset_source_type": "Organization", "ruleset_source": c.Owner,
		"ruleset_id": rulesetID + 1}}
	if _, ruled := c.Rules().Ruled[c.Param("branch")]; ruled {
		all = append(all, map[string]any{"type": "pull_request", "ruleset_source_type": "Repository",
			"ruleset_source": c.Owner + "/" + c.Name, "ruleset_id": rulesetID,
			"parameters": map[string]any{"dismiss_stale_reviews_on_push": true, "require_code_owner_review": false,
				"require_last_push_approval":      false,
				"required_approving_review_count": 1, "required_review_thread_resolution": false}})
	}
	return forgetest.Reply{Status: http.StatusOK, Body: all}
}

func getRuleset(c *forgetest.Call) forgetest.Reply {
	if c.Number("ruleset_id") != rulesetID {
		return refuse(http.StatusNotFound, notFound)
	}
	bypass := "never"
	for _, who := range c.Rules().Ruled {
		if slices.Contains(who, c.By.Login) {
			bypass = "always"
		}
	}
	return forgetest.Reply{Status: http.StatusOK, Body: map[string]any{"id": rulesetID, "name": "reviews",
		"source": c.Owner + "/" + c.Name, "enforcement": "active", "current_user_can_bypass": bypass}}
}
