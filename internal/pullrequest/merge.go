package pullrequest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// nothing is what is ordered of a pull request that the forge is surely not to merge by itself, as far as the bot goes.
// What an earlier run ordered is not known before it is taken back.
const nothing = "nothing"

// order is what is ordered of a branch that the forge is to merge by itself: its tip, and how.
func (l *look) order(tip string) string {
	if method := l.world.Environment.PullRequests.AutoMerge; method != "" && !l.world.PeopleMerge {
		return tip + " " + string(method)
	}
	return nothing
}

// merge lets the forge merge by itself where that is configured. Where it is not, merge takes back what was ordered,
// by an earlier run or while it was configured.
func (l *look) merge(ctx context.Context, f *file, tip string) error {
	want := l.order(tip)
	if want == nothing {
		return l.notByItselfYet(ctx, f)
	}
	if f.seen.Number == 0 || f.ordered == want || f.tried == tip && l.Now().Sub(f.last) < f.wait {
		return nil
	}
	method := forge.Method(strings.ToLower(string(l.world.Environment.PullRequests.AutoMerge)))
	order := forge.Merge{When: forge.WhenReady, Method: method, Commit: tip}
	_, err := l.Forge.Merge(ctx, f.seen.Number, order)
	var unsupported *forge.UnsupportedError
	var notReady *forge.NotReadyError
	byHand := errors.As(err, &unsupported)
	if byHand { // it is tried from time to time instead
		if err := l.notByItself(ctx, f); err != nil { // by another method
			return err
		}
		order.When = forge.Now
		_, err = l.Forge.Merge(ctx, f.seen.Number, order)
	}
	switch {
	case errors.As(err, &notReady):
		f.later(l.Now(), tip)
		if byHand {
			return nil
		}
	case err == nil && !byHand:
		f.ordered = want
	}
	return err
}

// later says when a merge is tried again that was not ready: soon, and then less and less often.
func (f *file) later(now time.Time, tip string) {
	if f.tried != tip {
		f.tried, f.pause = tip, 0
	}
	f.pause = min(max(2*f.pause, soon), rest)
	f.last, f.wait = now, f.pause
}

// see notes a pull request. Of another one than before it is not known what was ordered.
func (f *file) see(pull forge.PullRequest) {
	if pull.Number != f.seen.Number {
		f.ordered = ""
	}
	f.seen = pull
}

// notByItself takes back the order to merge by itself.
func (l *look) notByItself(ctx context.Context, f *file) error {
	if f.seen.Number == 0 || f.seen.State != forge.StateOpen || f.ordered == nothing {
		return nil
	}
	if _, err := l.Forge.Merge(ctx, f.seen.Number, forge.Merge{When: forge.NotAnymore}); err != nil {
		var unsupported *forge.UnsupportedError
		if !errors.As(err, &unsupported) {
			return err
		}
	}
	f.ordered = nothing
	return nil
}

// mostTakenBack is how many orders of an earlier run are taken back in one look: it has to ask for each whether there
// is one.
const mostTakenBack = 8

// notByItselfYet is notByItself where it may take some looks, since what is ordered is the bot's own commit.
func (l *look) notByItselfYet(ctx context.Context, f *file) error {
	if f.ordered == "" && f.seen.Number != 0 {
		if l.takenBack == mostTakenBack {
			return nil
		}
		l.takenBack++
	}
	return l.notByItself(ctx, f)
}

// keepsWaiting looks after a branch about which nothing can be said now. What others push to it meanwhile is not merged
// by itself, nor what was ordered when that was configured.
func (l *look) keepsWaiting(ctx context.Context, x *rollout.Decision, was gitops.Proposed) error {
	if was.Branch == "" {
		return nil
	}
	f, held := l.file(x.Plan.Deployment), !was.Theirs && heldByPolicy(x)
	if held {
		if err := l.status(ctx, f, was.Tip, forge.Status{State: forge.StatusPending,
			Description: heldBack}); err != nil {
			return err
		}
	}
	if f.ordered == nothing || !held && f.ordered == l.order(was.Tip) {
		return nil
	}
	pull, err := l.openOf(ctx, was.Branch)
	if err != nil {
		return err
	}
	if f.see(pull); pull.Number == 0 {
		f.ordered = nothing
	}
	return l.notByItselfYet(ctx, f)
}

// heldByPolicy reports whether policy holds a raise now: what waits for approval is not to be merged before it may be
// done.
func heldByPolicy(x *rollout.Decision) bool {
	return slices.ContainsFunc(x.Plan.Held, func(h rollout.Held) bool {
		return h.Action.IsRaise() && h.Verdict.Effect.Strictness() >= rollout.HoldEffect.Strictness()
	})
}

// What is said of a branch on its last commit.
const (
	heldBack  = "policy holds it for now: merged now, it would be put back"
	allowed   = "policy allows it, once it is approved"
	leftAlone = "it has commits of others and is left alone; what is merged is decided again"
	outdated  = "it has commits of others, and is about an earlier proposal: close its pull request to see what " +
		"is proposed now"
)

// leave leaves a branch to those who changed it: it says so, and takes back the order to merge it by itself.
func (l *look) leave(ctx context.Context, n rollout.Name, was gitops.Proposed, say forge.Status) error {
	f := l.file(n)
	if f.status != was.Tip+" "+say.Description {
		l.Log.InfoContext(ctx, "proposal left alone", "deployment", n.String(), "branch", was.Branch, "commit", was.Tip,
			"why", say.Description)
	}
	return errors.Join(l.notByItself(ctx, f), l.status(ctx, f, was.Tip, say))
}

// status says on a branch's last commit what becomes of it.
func (l *look) status(ctx context.Context, f *file, tip string, say forge.Status) error {
	is := tip + " " + say.Description
	if f.status == is {
		return nil
	}
	say.Context = "rampart/" + l.world.Environment.Name
	if err := l.Forge.SetStatus(ctx, tip, say); err != nil {
		return err
	}
	f.status = is
	return nil
}
