package forgetest

import (
	"fmt"
	"time"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/gittest"
)

// What people do, by the pages of the forge or by Git.

// Branch makes a branch from main with a commit of its own, and gives the commit.
func (w *World) Branch(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return w.Git.Commit(gittest.Commit{Branch: name, Parent: "refs/heads/main",
		Write: map[string]string{fmt.Sprintf("%s/%d", name, w.ids): "x\n"}})
}

// Push adds a commit to a branch, with the files that are given, or with one that no other commit has.
func (w *World) Push(branch string, files map[string]string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	if files == nil {
		files = map[string]string{fmt.Sprintf("pushed/%d", w.ids): "x\n"}
	}
	return w.Git.Commit(gittest.Commit{Branch: branch, Write: files})
}

// DeleteBranch is what the person does.
func (w *World) DeleteBranch(name string) { w.Git.Git("update-ref", "-d", "refs/heads/"+name) }

// ClosePull closes a pull request.
func (w *World) ClosePull(number int64, by *User) {
	w.Do(func(s *State) { s.Close(s.Pull(int(number)), by) })
}

// Reopen opens a closed one again.
func (w *World) Reopen(number int64) {
	w.Do(func(s *State) {
		p := s.Pull(int(number))
		p.State, p.ClosedBy = Open, nil
		s.Touch(p)
	})
}

// MergePull merges a pull request, whatever the rules say.
func (w *World) MergePull(number int64, by *User, method forge.Method) {
	w.Do(func(s *State) { s.Merge(s.Pull(int(number)), by, string(method)) })
}

// Rewrite gives it another body.
func (w *World) Rewrite(number int64, body string) { w.Edit(number, func(p *Pull) { p.Body = body }) }

// SetDraft makes it a draft, which cannot be merged, or no draft any more.
func (w *World) SetDraft(number int64, draft bool) {
	w.Edit(number, func(p *Pull) { p.Draft = draft })
}

// AddLabel adds a label.
func (w *World) AddLabel(number int64, name string) {
	w.Edit(number, func(p *Pull) { p.Labels = append(p.Labels, name) })
}

// Now is the world's time.
func (w *World) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// Later has nothing to wait for: everything has a time of its own.
func (w *World) Later() {}

// Allow has pull requests merged in this way only.
func (w *World) Allow(method forge.Method) {
	w.SetRules(func(r *Rules) { r.Methods = []string{string(method)} })
}

// Advance has main be a commit, as somebody pushed it.
func (w *World) Advance(commit string) { w.Git.Git("update-ref", "refs/heads/main", commit) }

// Remove removes an account; the forge shows nothing of it then.
func (w *World) Remove(u *User) {
	w.Do(func(s *State) {
		for _, p := range s.Pulls() {
			for _, by := range []**User{&p.Author, &p.ClosedBy} {
				if *by == u {
					*by = nil
				}
			}
		}
	})
}

// Edit changes a pull request.
func (w *World) Edit(number int64, change func(*Pull)) {
	w.Do(func(s *State) {
		p := s.Pull(int(number))
		change(p)
		s.Touch(p)
	})
}

// Say adds a review.
func (w *World) Say(number int64, by *User, state string) {
	w.Do(func(s *State) {
		p := s.Pull(int(number))
		p.Reviews = append(p.Reviews, Review{By: by, State: state, Commit: p.HeadCommit, At: s.Tick()})
		s.Touch(p)
	})
}

// Check sets a commit status, as a CI would.
func (w *World) Check(commit, context, state string) {
	w.Do(func(s *State) { s.SetStatus(Status{Commit: commit, Context: context, State: state}) })
}

// OpenFork opens a pull request from a branch of that name in a fork.
func (w *World) OpenFork(branch string) (number int64) {
	w.Do(func(s *State) {
		number = int64(s.Open(Pull{Title: "not yours", Head: branch, Base: "main", Author: w.Reader, Fork: true,
			HeadCommit: s.Tip("main")}).Number)
	})
	return number
}

// Look gives a copy of a pull request as it is.
func (w *World) Look(number int64) (p Pull) {
	w.Do(func(s *State) { p = *s.Pull(int(number)) })
	return p
}

// Status gives the last status of a context.
func (w *World) Status(commit, context string) (found Status) {
	w.Do(func(s *State) {
		for _, st := range s.Statuses(commit) {
			if st.Context == context {
				found = st
			}
		}
	})
	return found
}
