package forgetest

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// settle notices what happened in Git, and merges what was waiting for it.
func (s *State) settle() {
	for _, p := range s.pulls {
		if p.State != Open || p.Fork {
			continue
		}
		tip := s.Tip(p.Head)
		switch {
		case tip == "":
			s.Close(p, s.Person) // only people delete branches here
			continue
		case tip != p.HeadCommit:
			p.HeadCommit, p.looked = tip, false
			s.ref(p)
			s.Touch(p)
		}
		if _, within := s.Git.Try("merge-base", "--is-ancestor", tip, "refs/heads/"+p.Base); within {
			s.merged(p, s.Person, tip) // somebody pushed it
			continue
		}
		if p.Auto != nil && s.Blocked(p) == "" && (!p.Auto.All || s.green(p)) {
			_ = s.Merge(p, p.Auto.By, p.Auto.Method)
		}
	}
}

// green says that no status is other than a success.
func (s *State) green(p *Pull) bool {
	return !slices.ContainsFunc(s.Statuses(p.HeadCommit), func(st Status) bool { return st.State != "success" })
}

// Conflicts says whether it can not be merged.
func (s *State) Conflicts(p *Pull) bool {
	_, ok := s.tree(p)
	return !ok
}

func (s *State) tree(p *Pull) (string, bool) {
	out, ok := s.Git.Try("merge-tree", "--write-tree", "refs/heads/"+p.Base, p.HeadCommit)
	hash, _, _ := strings.Cut(out, "\n")
	return hash, ok
}

// What is in the way of a merge.
const (
	BlockedDraft     = "draft"
	BlockedConflict  = "conflict"
	BlockedCheck     = "check"
	BlockedApprovals = "approvals"
)

// Blocked tells what is in the way of a merge; empty: nothing.
func (s *State) Blocked(p *Pull) string {
	good := 0
	for _, st := range s.Statuses(p.HeadCommit) {
		if slices.Contains(s.rules.Checks, st.Context) && st.State == "success" {
			good++
		}
	}
	switch {
	case p.Draft:
		return BlockedDraft
	case s.Conflicts(p):
		return BlockedConflict
	case good < len(s.rules.Checks):
		return BlockedCheck
	case len(s.Approvers(p)) < s.rules.Approvals:
		return BlockedApprovals
	}
	return ""
}

// Approvers are those whose last word is a consent that counts.
func (s *State) Approvers(p *Pull) (by []Review) {
	var seen []*User
	for _, r := range slices.Backward(p.Reviews) {
		if r.State == "COMMENTED" || slices.Contains(seen, r.By) {
			continue
		}
		seen = append(seen, r.By)
		if r.State == "APPROVED" && r.By.Write {
			by = append(by, r)
		}
	}
	slices.Reverse(by)
	return by
}

// MayMerge says whether a user is allowed to.
func (s *State) MayMerge(u *User) bool {
	return u.Write && (len(s.rules.Mergers) == 0 || slices.Contains(s.rules.Mergers, u.Login))
}

// Merge merges it in Git: "merge", "squash", "rebase", or "ff" for a fast-forward and "squash-merge" for GitLab's
// squash. It gives false where Git cannot.
func (s *State) Merge(p *Pull, by *User, method string) bool {
	base := "refs/heads/" + p.Base
	tree, ok := s.tree(p)
	if !ok {
		return false
	}
	author := []string{"-c", "user.name=" + by.Login, "-c", "user.email=" + by.Login + "@example.com", "commit-tree",
		tree, "-m", p.Title}
	commit := func(parents ...string) string {
		args := author
		for _, parent := range parents {
			args = append(args, "-p", parent)
		}
		return s.Git.Git(args...)
	}
	tip := s.Tip(p.Base)
	var made string
	switch method {
	case "merge":
		made = commit(tip, p.HeadCommit)
	case "squash":
		made = commit(tip)
		p.SquashCommit = made
	case "squash-merge":
		p.SquashCommit = s.Git.Git("commit-tree", p.HeadCommit+"^{tree}", "-m", p.Title, "-p",
			s.Git.Git("merge-base", tip, p.HeadCommit))
		made = commit(tip, p.SquashCommit)
	case "rebase":
		made = s.rebase(p)
	case "ff":
		if _, ok := s.Git.Try("merge-base", "--is-ancestor", tip, p.HeadCommit); !ok {
			return false
		}
		made = p.HeadCommit
	default:
		return false
	}
	s.Git.Git("update-ref", base, made, tip)
	s.merged(p, by, made)
	return true
}

func (s *State) merged(p *Pull, by *User, commit string) {
	p.State, p.ClosedBy, p.MergeCommit, p.Ended, p.Auto = Merged, by, commit, s.Tick(), nil
	p.Updated = p.Ended
}

// rebase makes new commits of its own, in a clone.
func (s *State) rebase(p *Pull) string {
	dir := filepath.Join(s.tb.TempDir(), "rebase")
	s.Git.Git("clone", "--quiet", s.Git.Dir, dir)
	clone := gittest.OpenRepo(s.tb, filepath.Join(dir, ".git"))
	at := []string{"--work-tree", dir}
	clone.Git(append(at, "checkout", "--quiet", "--detach", p.HeadCommit)...)
	clone.Git("config", "core.bare", "false")
	clone.Git("-C", dir, "--work-tree", dir, "rebase", "--quiet", "--force-rebase", "origin/"+p.Base)
	made := clone.Git("rev-parse", "HEAD")
	s.Git.Git("fetch", "--quiet", dir, "HEAD")
	return made
}
