package review

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Branches are where proposals are; see gitops.Repository.
type Branches interface {
	Proposals(ctx context.Context, environment string) (map[rollout.Name]gitops.Proposed, error)
	Propose(ctx context.Context, p gitops.Proposal, was gitops.Proposed) (tip string, err error)
	Withdraw(ctx context.Context, was gitops.Proposed) error
}

// Config is what a Desk works with.
type Config struct {
	Branches Branches
	Forge    forge.Forge
	// Base is the branch that the outputs are on which name none.
	Base string
	// Edit makes of a routing.yaml one that asks for another routing.
	Edit func(routing []byte, desired v1alpha1.DesiredRouting) ([]byte, error)
	// Write gives title and body of the pull request for a decision.
	Write func(d reconcile.Decision) (title, body string)
	Now   func() time.Time
	Log   *slog.Logger
	// LookEvery is how often the forge is asked about one pull request; zero: each time.
	LookEvery time.Duration
}

// patience bounds what one look at an environment's proposals takes of a cycle.
const patience = 20 * time.Second

// rest is how long a forge is left alone that does not answer, or asks to be: a cycle takes traffic back, and should not wait for it.
const rest = time.Minute

// updateEvery is how often the body of a pull request follows the facts.
const updateEvery = 5 * time.Minute

// Desk is a reconcile.Proposer. It is used by one goroutine at a time.
type Desk struct {
	Config
	environments map[string]*environment
	// until is when the forge is asked again.
	until time.Time
}

var _ reconcile.Proposer = (*Desk)(nil)

// environment is what is known of one environment.
type environment struct {
	// looked says that its branches were listed once, and open that there are some.
	looked, open bool
	reviews      map[rollout.Name]rollout.Review
	files        map[rollout.Name]*file
}

// file is what was last seen and written of one worker deployment's pull request.
type file struct {
	seen    forge.PullRequest
	at      time.Time // seen
	written string    // title and body
	when    time.Time // written
	status  string    // the commit that has one, and what it says
	merging string    // the commit that is to be merged by itself
	trouble string    // that was told last
	until   time.Time // when it is tried again, after it was refused
	merged  int64     // the pull request that was seen merged
	current string    // the tip that is up to date, and the base that it is up to date with
	title   string    // of what was proposed
}

// New makes a Desk.
func New(c Config) *Desk { return &Desk{Config: c, environments: map[string]*environment{}} }

// LookAgain says that something happened at the forge: the next Propose asks it about each pull request, however short ago it did.
func (d *Desk) LookAgain() {
	for _, e := range d.environments {
		for _, f := range e.files {
			f.at = time.Time{}
		}
	}
}

// Reviews gives what is known of an environment's reviews. It asks nobody.
func (d *Desk) Reviews(name string) map[rollout.Name]rollout.Review {
	if e := d.environments[name]; e != nil {
		return e.reviews
	}
	return nil
}

// Propose brings the branches and pull requests of an environment in line with what was decided, and looks what became of them. It
// reports whether people did something, or are told something, that the next decision should know. What goes wrong is told, and tried
// again the next time; it keeps nothing else up.
func (d *Desk) Propose(ctx context.Context, world rollout.EnvironmentWorld, decisions []reconcile.Decision) (news bool) {
	name := world.Environment.Name
	e := d.environments[name]
	if e == nil {
		e = &environment{reviews: map[rollout.Name]rollout.Review{}, files: map[rollout.Name]*file{}}
		d.environments[name] = e
	}
	asks := slices.ContainsFunc(decisions, func(x reconcile.Decision) bool { return x.Plan.Review != nil })
	if !asks && e.looked && !e.open || d.Now().Before(d.until) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	there, err := d.Branches.Proposals(ctx, name)
	if err != nil {
		d.Log.WarnContext(ctx, "proposals could not be looked at", "environment", name, "error", err)
		return false
	}
	l := &look{Desk: d, environment: e, world: world, there: there}
	return l.all(ctx, decisions)
}

// look is one pass over an environment.
type look struct {
	*Desk
	*environment
	world rollout.EnvironmentWorld
	there map[rollout.Name]gitops.Proposed
	news  bool
}

func (l *look) all(ctx context.Context, decisions []reconcile.Decision) bool {
	decided := map[rollout.Name]bool{}
	for _, x := range decisions {
		n := x.Plan.Deployment
		decided[n] = true
		var err error
		switch was, there := l.there[n]; {
		case l.Now().Before(l.until): // it was found out in this pass
		case l.files[n] != nil && l.Now().Before(l.files[n].until):
		case x.Plan.Review != nil:
			err = l.ask(ctx, x, was)
		case waits(x): // nothing can be said of it now
		case there:
			err = l.withdraw(ctx, n, was, x.Plan.Status)
		default:
			l.forget(n)
		}
		l.tell(ctx, n, err)
	}
	for _, s := range l.world.Deployments {
		decided[s.Deployment] = decided[s.Deployment] || s.Record.Routing != nil && proposed(&s.Record.Routing.Spec)
	}
	for n, was := range l.there { // of what is not there any more
		if !decided[n] && !l.Now().Before(l.until) {
			l.tell(ctx, n, l.withdraw(ctx, n, was, nil))
		}
	}
	l.looked, l.open = true, len(l.there) > 0
	return l.news
}

// waits reports whether a decision leaves a proposal as it is: it wrote no record, or one that proposes and asks nobody just now.
func waits(x reconcile.Decision) bool {
	return x.Plan.Record == nil && !x.Plan.Remove || proposed(x.Plan.Record)
}

func proposed(rec *v1alpha1.RoutingSpec) bool {
	return rec != nil && rec.Proposal != nil && !rec.Proposal.Withdrawn
}

// tell says what went wrong, once.
func (l *look) tell(ctx context.Context, n rollout.Name, err error) {
	if err == nil || errors.Is(err, rollout.ErrMoved) { // the next cycle sees what moved
		return
	}
	var away *forge.UnavailableError
	var limit *forge.RateLimitError
	var refused *forge.RefusedError
	switch {
	case errors.As(err, &limit):
		l.until = limit.Until
	case errors.As(err, &away), ctx.Err() != nil:
		l.until = l.Now().Add(rest)
	case errors.As(err, &refused): // a person has to do something about it
		l.file(n).until = l.Now().Add(rest)
	}
	f := l.file(n)
	if f.trouble != err.Error() {
		l.Log.WarnContext(ctx, "proposal not brought in line", "deployment", n.String(), "error", err)
	}
	f.trouble = err.Error()
}

func (l *look) file(n rollout.Name) *file {
	if l.files[n] == nil {
		l.files[n] = &file{}
	}
	return l.files[n]
}

func (l *look) forget(n rollout.Name) {
	delete(l.files, n)
	delete(l.reviews, n)
}

// know keeps what became of a proposal.
func (l *look) know(n rollout.Name, r rollout.Review) {
	if was, ok := l.reviews[n]; was != r || !ok && r != (rollout.Review{}) {
		l.news = true
	}
	l.reviews[n] = r
}

// proposalID names a proposal on its branch: one that is made anew is another.
func proposalID(environment string, n rollout.Name, p v1alpha1.RecordedProposal) string {
	text := fmt.Sprintf("%s\n%s\n%s\n%s\n%v\n%v\n%s", environment, n, p.BuildID, p.TemplateHash, p.From, p.To, p.Since.UTC().Format(time.RFC3339Nano))
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// ask proposes what a decision waits for.
func (l *look) ask(ctx context.Context, x reconcile.Decision, was gitops.Proposed) error {
	n, f := x.Plan.Deployment, l.file(x.Plan.Deployment)
	recorded := *x.Plan.Record.Proposal
	id := proposalID(l.world.Environment.Name, n, recorded)
	pull, err := l.pull(ctx, n, was)
	if err != nil {
		return err
	}
	// A pull request is about this proposal if that is written down, or if it is of this branch as it is.
	about := pull.Number != 0 && (pull.URL == recorded.PullRequest || was.ID == id && pull.HeadCommit != "" && pull.HeadCommit == was.Tip)
	if about && pull.State == forge.StateClosed {
		by, err := l.closedBy(ctx, pull.Number)
		if err != nil {
			return err
		}
		if !by.Self { // the branch goes when the hold is in Git
			l.know(n, rollout.Review{Since: recorded.Since, URL: pull.URL, Rejected: true, By: by.Login})
			return nil
		}
	}
	switch {
	case about && pull.State == forge.StateMerged && f.merged != pull.Number:
		f.merged = pull.Number
		return nil // the next cycle reads what that made of the branch; if it still asks then, it went elsewhere
	case was.Theirs:
		r := rollout.Review{Since: recorded.Since, Note: "the branch " + was.Branch + " has commits of others, and is left alone"}
		if pull.State == forge.StateOpen {
			r.URL = pull.URL
		}
		l.know(n, r)
		return l.leave(ctx, f)
	}
	title, body := l.Write(x)
	open := pull.State == forge.StateOpen && pull.Number != 0
	superseded := open && was.ID != id
	if superseded {
		if err := l.Forge.Update(ctx, pull.Number, forge.Change{Close: true}); err != nil {
			return err
		}
	}
	tip, err := l.propose(ctx, f, was, gitops.Proposal{Environment: l.world.Environment, Deployment: n, ID: id, Dir: x.Plan.Dir,
		Message: title + "\n\nMerging this approves it: it is decided again before anything is done.",
		Edit:    func(routing []byte) ([]byte, error) { return l.Edit(routing, x.Plan.Review.Desired) }})
	if err != nil {
		return err
	}
	l.there[n] = gitops.Proposed{Branch: gitops.ProposalBranch(l.world.Environment.Name, n), Tip: tip, ID: id}
	if !open || superseded {
		before := pull
		if pull, err = l.openPull(ctx, n, title, body); err != nil {
			return err
		}
		if superseded {
			l.tell(ctx, n, l.Forge.Update(ctx, before.Number, forge.Change{Comment: "Superseded by " + pull.URL}))
		}
		f.written, f.when = title+"\n"+body, l.Now()
	}
	f.seen, f.title = pull, title
	l.know(n, rollout.Review{Since: recorded.Since, URL: pull.URL})
	return errors.Join(l.update(ctx, f, title, body), l.status(ctx, f, tip, x), l.merge(ctx, f, tip))
}

// propose brings the branch up to date, which takes a question to the server unless nothing moved since that was asked last.
func (l *look) propose(ctx context.Context, f *file, was gitops.Proposed, p gitops.Proposal) (string, error) {
	now := was.Tip + " " + l.world.Base
	if was.ID == p.ID && !was.Theirs && f.current == now {
		return was.Tip, nil
	}
	tip, err := l.Branches.Propose(ctx, p, was)
	if err == nil {
		f.current = tip + " " + l.world.Base
	}
	return tip, err
}

// pull gives the newest pull request of a proposal's branch; its zero value where there is none.
func (l *look) pull(ctx context.Context, n rollout.Name, was gitops.Proposed) (forge.PullRequest, error) {
	f := l.file(n)
	if l.LookEvery > 0 && f.seen.Number != 0 && f.seen.State == forge.StateOpen && l.Now().Sub(f.at) < l.LookEvery && f.seen.HeadCommit == was.Tip {
		return f.seen, nil
	}
	list, err := l.Forge.List(ctx, forge.Filter{Head: gitops.ProposalBranch(l.world.Environment.Name, n)})
	if err != nil || len(list) == 0 {
		return forge.PullRequest{}, err
	}
	pull := list[0]
	if pull.HeadCommit == "" && pull.State != forge.StateOpen {
		details, err := l.Forge.Get(ctx, pull.Number)
		if err != nil {
			return pull, err
		}
		pull.HeadCommit = details.HeadCommit
	}
	f.seen, f.at = pull, l.Now()
	return pull, nil
}

func (l *look) closedBy(ctx context.Context, number int64) (forge.Person, error) {
	details, err := l.Forge.Get(ctx, number)
	return details.ClosedBy, err
}

func (l *look) openPull(ctx context.Context, n rollout.Name, title, body string) (forge.PullRequest, error) {
	env := l.world.Environment
	base := env.Output.Branch
	if base == "" {
		base = l.Base
	}
	pull, err := l.Forge.Open(ctx, forge.Opening{Title: title, Body: body, Head: gitops.ProposalBranch(env.Name, n), Base: base,
		Labels: env.PullRequests.Labels, Reviewers: env.PullRequests.Reviewers, Teams: env.PullRequests.Teams})
	var exists *forge.ExistsError
	var partial *forge.PartialError
	switch {
	case errors.As(err, &exists):
		return exists.PullRequest, nil
	case errors.As(err, &partial):
		l.tell(ctx, n, err)
	case err != nil:
		return pull, err
	}
	l.Log.InfoContext(ctx, "proposed", "deployment", n.String(), "pullRequest", pull.URL, "title", title)
	return pull, nil
}

// update lets title and body follow the facts.
func (l *look) update(ctx context.Context, f *file, title, body string) error {
	text := title + "\n" + body
	same := strings.TrimSpace(strings.ReplaceAll(f.seen.Body, "\r\n", "\n")) == strings.TrimSpace(body) && f.seen.Title == title
	if f.seen.Number == 0 || f.written == text || f.written == "" && same || !f.when.IsZero() && l.Now().Sub(f.when) < updateEvery {
		return nil
	}
	if err := l.Forge.Update(ctx, f.seen.Number, forge.Change{Title: title, Body: body}); err != nil {
		return err
	}
	f.written, f.when = text, l.Now()
	return nil
}

// status says on the proposal's commit what policy says: it would let it go on, once it is approved.
func (l *look) status(ctx context.Context, f *file, tip string, x reconcile.Decision) error {
	s := forge.Status{Context: "rampart/" + l.world.Environment.Name, State: forge.StatusSuccess, Description: "policy allows it, once it is approved"}
	if f.status == tip {
		return nil
	}
	if err := l.Forge.SetStatus(ctx, tip, s); err != nil {
		return err
	}
	f.status = tip
	return nil
}

// merge lets the forge merge by itself, where that is configured.
func (l *look) merge(ctx context.Context, f *file, tip string) error {
	method := l.world.Environment.PullRequests.AutoMerge
	if method == "" || f.seen.Number == 0 || f.merging == tip {
		return nil
	}
	order := forge.Merge{When: forge.WhenReady, Method: forge.Method(strings.ToLower(string(method))), Commit: tip}
	_, err := l.Forge.Merge(ctx, f.seen.Number, order)
	var unsupported *forge.UnsupportedError
	var notReady *forge.NotReadyError
	if errors.As(err, &unsupported) { // it is tried each time instead
		order.When = forge.Now
		if _, err = l.Forge.Merge(ctx, f.seen.Number, order); errors.As(err, &notReady) {
			return nil
		}
		return err
	}
	if err == nil {
		f.merging = tip
	}
	return err
}

// leave takes back the order to merge by itself what others have changed.
func (l *look) leave(ctx context.Context, f *file) error {
	if l.world.Environment.PullRequests.AutoMerge == "" || f.seen.Number == 0 || f.merging == "theirs" {
		return nil
	}
	if _, err := l.Forge.Merge(ctx, f.seen.Number, forge.Merge{When: forge.NotAnymore}); err != nil {
		var unsupported *forge.UnsupportedError
		if !errors.As(err, &unsupported) {
			return err
		}
	}
	f.merging = "theirs"
	return nil
}

// withdraw takes back what is not proposed any more.
func (l *look) withdraw(ctx context.Context, n rollout.Name, was gitops.Proposed, status *v1alpha1.WorkerDeploymentStatus) error {
	if was.Theirs {
		return nil
	}
	l.file(n).at = time.Time{} // it may be merged since
	pull, err := l.pull(ctx, n, was)
	if err != nil {
		return err
	}
	if pull.Number != 0 && pull.State == forge.StateOpen {
		change := forge.Change{Close: true, Comment: "This does not come next any more." + because(status)}
		if err := l.Forge.Update(ctx, pull.Number, change); err != nil {
			return err
		}
	}
	if err := l.Branches.Withdraw(ctx, was); err != nil {
		return err
	}
	delete(l.there, n)
	l.forget(n)
	return nil
}

// because gives the reason of where a worker deployment stands: one of a few words of our own, no text of others.
func because(status *v1alpha1.WorkerDeploymentStatus) string {
	if status == nil || len(status.Conditions) == 0 {
		return ""
	}
	return " The worker deployment is at: " + status.Conditions[0].Reason + "."
}
