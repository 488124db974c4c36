package gitlabtest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/test/forgetest"
)

func list(c *forgetest.Call) forgetest.Reply {
	state := map[string]string{"opened": forgetest.Open, "closed": forgetest.Closed,
		"merged": forgetest.Merged}[c.Query("state")]
	after, _ := time.Parse(time.RFC3339, c.Query("updated_after")) // empty: all
	branch, base := c.Query("source_branch"), c.Query("target_branch")
	before := func(a, b *forgetest.Pull) int { return cmp.Compare(a.Number, b.Number) }
	if c.Query("order_by") == "updated_at" {
		before = func(a, b *forgetest.Pull) int { return a.Updated.Compare(b.Updated) }
	}
	all := forgetest.Newest(c.Pulls(), func(p *forgetest.Pull) bool {
		return (state == "" || p.State == state) && (branch == "" || p.Head == branch) &&
			(base == "" || p.Base == base) && !p.Updated.Before(after)
	}, before)
	if c.Query("sort") == "asc" {
		slices.Reverse(all)
	}
	page, header := forgetest.Page(c, all)
	found := []any{}
	for _, p := range page {
		found = append(found, mergeRequest(c, p, listed))
	}
	return forgetest.Reply{Status: http.StatusOK, Body: found, Header: header}
}

func get(c *forgetest.Call) forgetest.Reply {
	return ok(mergeRequest(c, c.Pull(c.Number("merge_request_iid")), single))
}

func create(c *forgetest.Call) forgetest.Reply {
	var o struct {
		Title, Description string
		Source             string `json:"source_branch"`
		Target             string `json:"target_branch"`
	}
	c.Decode(&o)
	if c.Tip(o.Source) == "" || c.Tip(o.Target) == "" {
		return forgetest.Reply{Status: http.StatusUnprocessableEntity,
			Body: map[string]any{"message": []string{"Source or target branch does not exist"}}}
	}
	for _, p := range c.Pulls() {
		if p.State == forgetest.Open && p.Head == o.Source && p.Base == o.Target && !p.Fork && !c.Rules().Racy {
			why := fmt.Sprintf("Another open merge request already exists for this source branch: !%d", p.Number)
			return forgetest.Reply{Status: http.StatusConflict, Body: map[string]any{"message": []string{why}}}
		}
	}
	p := c.Open(forgetest.Pull{Head: o.Source, Base: o.Target, Author: c.By})
	p.Title, p.Draft = strings.CutPrefix(o.Title, draftMark)
	p.Body = obey(c, p, o.Description)
	body := mergeRequest(c, p, single)
	c.Forget(p) // it only begins to look
	return created(body)
}

// obey does the commands of a text, and leaves them out of it.
func obey(c *forgetest.Call, p *forgetest.Pull, text string) string {
	var kept []string
	code := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		name, is := strings.CutPrefix(strings.TrimSpace(line), "/")
		switch {
		case code || !is:
			kept = append(kept, line)
		case strings.HasPrefix(name, "close"):
			c.Close(p, c.By)
		case strings.HasPrefix(name, "merge"):
			p.Auto = &forgetest.Auto{By: c.By, Method: "merge"}
		default:
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func update(c *forgetest.Call) forgetest.Reply {
	p := c.Pull(c.Number("merge_request_iid"))
	var o struct {
		Title, Description *string
		Event              string   `json:"state_event"`
		Add                string   `json:"add_labels"`
		Reviewers          *[]int64 `json:"reviewer_ids"`
		Squash             *bool
	}
	c.Decode(&o)
	if o.Title != nil {
		p.Title, p.Draft = strings.CutPrefix(*o.Title, draftMark)
	}
	if o.Description != nil {
		p.Body = obey(c, p, *o.Description)
	}
	if o.Squash != nil {
		p.Squash = *o.Squash
		if p.Auto != nil { // it is looked at when it is merged
			p.Auto.Method = how(c, p)
		}
	}
	for name := range strings.SplitSeq(o.Add, ",") {
		if name != "" && !slices.Contains(p.Labels, name) {
			p.Labels = append(p.Labels, name)
		}
	}
	if o.Reviewers != nil {
		p.Reviewers = reviewers(c, *o.Reviewers)
	}
	c.Touch(p)
	if o.Event == "close" {
		c.Close(p, c.By)
	}
	return ok(mergeRequest(c, p, single))
}

// reviewers gives users by ID. It leaves out, without a word, those who are not members and those who are too many.
func reviewers(c *forgetest.Call, ids []int64) (all []*forgetest.User) {
	for _, id := range ids {
		u := c.UserByID(id)
		if most := c.Rules().Reviewers; u == nil || u.Guest || most > 0 && len(all) >= most {
			continue
		}
		all = append(all, u)
	}
	return all
}

func merge(c *forgetest.Call) forgetest.Reply {
	p := c.Pull(c.Number("merge_request_iid"))
	var o struct {
		SHA           string
		Squash        *bool
		Auto          bool `json:"auto_merge"`
		WhenSucceeded bool `json:"merge_when_pipeline_succeeds"`
	}
	c.Decode(&o)
	auto := o.Auto || o.WhenSucceeded
	if o.Squash != nil && *o.Squash { // false does not undo it
		p.Squash = true
	}
	wait := settled(c, p)
	switch {
	case !c.MayMerge(c.By):
		return refuse(http.StatusUnauthorized, "")
	case p.State != forgetest.Open || wait == "draft_status":
		return refuse(http.StatusMethodNotAllowed, "405 Method Not Allowed")
	case wait == "conflict" || wait == "need_rebase":
		return refuse(http.StatusUnprocessableEntity, "Branch cannot be merged")
	case o.SHA != "" && o.SHA != p.HeadCommit:
		return refuse(http.StatusConflict, "SHA does not match HEAD of source branch: "+p.HeadCommit)
	// without a pipeline: until 2026
	case wait != "mergeable" && !auto, auto && wait == "mergeable" && (pipeline(c, p) == nil || failed(c, p)):
		return refuse(http.StatusMethodNotAllowed, "405 Method Not Allowed")
	case wait != "mergeable", auto && running(c, p):
		p.Auto = &forgetest.Auto{By: c.By, Method: how(c, p), All: true}
		c.Touch(p)
	case !c.Merge(p, c.By, how(c, p)):
		return refuse(http.StatusUnprocessableEntity, "Branch cannot be merged")
	}
	return ok(mergeRequest(c, p, single))
}

func cancel(c *forgetest.Call) forgetest.Reply {
	p := c.Pull(c.Number("merge_request_iid"))
	switch {
	case !c.By.Write:
		return refuse(http.StatusUnauthorized, "")
	case p.State != forgetest.Open:
		return refuse(http.StatusMethodNotAllowed, "405 Method Not Allowed")
	case p.Auto == nil:
		return refuse(http.StatusNotAcceptable, "Can't cancel the automatic merge")
	}
	p.Auto = nil
	c.Touch(p)
	return created(mergeRequest(c, p, single))
}

func createNote(c *forgetest.Call) forgetest.Reply {
	p := c.Pull(c.Number("merge_request_iid"))
	var o struct{ Body string }
	c.Decode(&o)
	text := obey(c, p, o.Body)
	if strings.TrimSpace(text) == "" {
		return forgetest.Reply{Status: http.StatusAccepted, Body: map[string]any{"commands_changes": map[string]any{}}}
	}
	p.Comments = append(p.Comments, forgetest.Comment{By: c.By, Body: text})
	c.Touch(p)
	now := c.Tick()
	return created(map[string]any{
		"id": len(p.Comments), "body": text, "author": person(c.By), "created_at": now, "updated_at": now,
		"system":      false,
		"noteable_id": 9000 + p.Number, "noteable_iid": p.Number, //nolint:misspell // GitLab's word
		"noteable_type": "MergeRequest", //nolint:misspell // GitLab's word
	})
}

// approvals answers as the free edition does, where nothing has to be approved, and else as the others.
func approvals(c *forgetest.Call) forgetest.Reply {
	p := c.Pull(c.Number("merge_request_iid"))
	by := []any{}
	for _, r := range c.Approvers(p) {
		by = append(by, map[string]any{"user": person(r.By), "approved_at": r.At})
	}
	body := map[string]any{"approved_by": by, "approved": len(by) > 0, "user_has_approved": false,
		"user_can_approve": c.By.Write}
	if required := c.Rules().Approvals; required > 0 {
		maps.Copy(body, map[string]any{
			"id": 9000 + p.Number, "iid": p.Number, "project_id": projectID, "title": p.Title, "state": "opened",
			"created_at": p.Created,
			"updated_at": p.Updated, "approvals_required": required, "approvals_left": max(0, required-len(by)),
		})
	}
	return ok(body)
}
