package gitlabtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/test/forgetest"
)

// shape is how much of a merge request is told.
type shape int

const (
	listed shape = iota + 1
	single
)

// draftMark begins the title of a draft.
const draftMark = "Draft: "

func mergeRequest(c *forgetest.Call, p *forgetest.Pull, much shape) map[string]any {
	state := map[string]string{forgetest.Open: "opened", forgetest.Closed: "closed",
		forgetest.Merged: "merged"}[p.State]
	title, source := p.Title, projectID
	if p.Draft {
		title = draftMark + title
	}
	if p.Fork {
		source++
	}
	status := detailed(c, p)
	body := map[string]any{
		"id": 9000 + p.Number, "iid": p.Number, "project_id": projectID, "title": title, "description": p.Body,
		"state":      state,
		"created_at": p.Created, "updated_at": p.Updated, "merged_at": nil, "closed_at": nil, "merge_user": nil,
		"merged_by": nil, "closed_by": nil,
		"target_branch": p.Base, "source_branch": p.Head, "author": person(p.Author), "reviewers": people(p.Reviewers),
		"assignees":         []any{},
		"source_project_id": source, "target_project_id": projectID, "labels": append([]string{}, p.Labels...),
		"draft": p.Draft, "work_in_progress": p.Draft,
		"merge_when_pipeline_succeeds": p.Auto != nil, "detailed_merge_status": status, "merge_status": "can_be_merged",
		"sha": p.HeadCommit, "merge_commit_sha": nil, "squash_commit_sha": nil, "squash": p.Squash,
		"user_notes_count": len(p.Comments), "has_conflicts": status == "conflict",
		"blocking_discussions_resolved": true, "force_remove_source_branch": nil,
		"web_url": fmt.Sprintf("%s/%s/%s/-/merge_requests/%d", c.Server.URL, c.Owner, c.Name, p.Number),
	}
	if p.Auto != nil { // also before it is merged
		body["merge_user"], body["merged_by"] = person(p.Auto.By), person(p.Auto.By)
	}
	switch p.State {
	case forgetest.Closed:
		body["closed_at"], body["closed_by"] = p.Ended, person(p.ClosedBy)
	case forgetest.Merged:
		body["merged_at"], body["merge_user"], body["merged_by"] = p.Ended, person(p.ClosedBy), person(p.ClosedBy)
		if p.SquashCommit != "" {
			body["squash_commit_sha"] = p.SquashCommit
		}
		if p.MergeCommit != p.SquashCommit && p.MergeCommit != p.HeadCommit { // a fast-forward has none
			body["merge_commit_sha"] = p.MergeCommit
		}
	}
	if much == single {
		body["head_pipeline"] = pipeline(c, p)
		body["user"] = map[string]any{"can_merge": c.MayMerge(c.By)}
		body["diff_refs"] = map[string]any{"base_sha": c.Tip(p.Base), "head_sha": p.HeadCommit,
			"start_sha": c.Tip(p.Base)}
	}
	return body
}

// detailed is what GitLab says of whether it can be merged.
func detailed(c *forgetest.Call, p *forgetest.Pull) string {
	if p.State != forgetest.Open {
		return "not_open"
	}
	if p.Fork {
		return "mergeable"
	}
	if !c.Looked(p) {
		return "checking"
	}
	return settled(c, p)
}

func settled(c *forgetest.Call, p *forgetest.Pull) string {
	switch c.Blocked(p) {
	case forgetest.BlockedDraft:
		return "draft_status"
	case forgetest.BlockedConflict:
		return "conflict"
	case forgetest.BlockedCheck:
		if running(c, p) {
			return "ci_still_running"
		}
		return "ci_must_pass"
	case forgetest.BlockedApprovals:
		return "not_approved"
	}
	if method(c) == "ff" {
		if _, ahead := c.Git.Try("merge-base", "--is-ancestor", "refs/heads/"+p.Base, p.HeadCommit); !ahead {
			return "need_rebase"
		}
	}
	return "mergeable"
}

func running(c *forgetest.Call, p *forgetest.Pull) bool {
	return slices.ContainsFunc(c.Statuses(p.HeadCommit), func(s forgetest.Status) bool {
		return s.State == "pending" || s.State == "running"
	})
}

func failed(c *forgetest.Call, p *forgetest.Pull) bool {
	return slices.ContainsFunc(c.Statuses(p.HeadCommit), func(s forgetest.Status) bool { return s.State == "failed" })
}

// pipeline is that which GitLab makes of statuses from outside.
func pipeline(c *forgetest.Call, p *forgetest.Pull) any {
	all := c.Statuses(p.HeadCommit)
	if len(all) == 0 {
		return nil
	}
	status := "success"
	switch {
	case running(c, p):
		status = "running"
	case failed(c, p):
		status = "failed"
	}
	return map[string]any{"id": 77, "sha": p.HeadCommit, "ref": p.Head, "status": status, "source": "external",
		"web_url": c.Server.URL}
}

// method is how the project merges: Rules.Methods as GitLab's settings say it.
func method(c *forgetest.Call) string {
	if slices.Contains(c.Rules().Methods, "rebase") && !slices.Contains(c.Rules().Methods, "merge") {
		return "ff"
	}
	return "merge"
}

// how a merge request is merged.
func how(c *forgetest.Call, p *forgetest.Pull) string {
	if p.Squash {
		return map[string]string{"ff": "squash", "merge": "squash-merge"}[method(c)]
	}
	return method(c)
}

func squashOption(c *forgetest.Call) string {
	methods := c.Rules().Methods
	switch {
	case !slices.Contains(methods, "squash"):
		return "never"
	case len(methods) == 1:
		return "always"
	}
	return "default_off"
}

func person(u *forgetest.User) any {
	id, name := int64(4), "ghost"
	if u != nil {
		id, name = u.ID, u.Login
	}
	return map[string]any{
		"id": id, "username": name, "name": name, "state": "active", "avatar_url": nil,
		"web_url": "https://gitlab.example.com/" + name,
	}
}

func people(all []*forgetest.User) []any {
	list := []any{}
	for _, u := range all {
		list = append(list, person(u))
	}
	return list
}

func label(name string) map[string]any {
	return map[string]any{"id": 7, "name": name, "color": "#5b7083", "text_color": "#FFFFFF", "is_project_label": true}
}

func status(c *forgetest.Call, st forgetest.Status) map[string]any {
	optional := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	return map[string]any{
		"id": 1, "sha": st.Commit, "ref": nil, "status": st.State, "name": st.Context, "target_url": optional(st.URL),
		"description": optional(st.Description), "created_at": time.Unix(0, 0).UTC(), "pipeline_id": 77,
		"author": person(c.By),
	}
}
