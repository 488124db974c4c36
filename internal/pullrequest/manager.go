package pullrequest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Config is what a Manager works with.
type Config struct {
	Branches Branches
	Forge    forge.Forge
	// Base is the branch that the outputs are on which name none.
	Base string
	// Edit makes of a routing.yaml one in which a proposal is approved.
	Edit func(routing []byte, ask rollout.ReviewAsk) ([]byte, error)
	// Same reports whether two contents of a routing.yaml propose the same. They may name different pull requests.
	Same func(was, is []byte) bool
	// Title and Body are those of the pull request for a decision. A body takes long beside a cycle's other work, so it
	// is asked for only where it may be written.
	Title func(d *rollout.Decision) string
	Body  func(ctx context.Context, env rollout.EnvironmentWorld, d *rollout.Decision) string
	// Commit gives title and body of the pull request for a commit, by its message, that a branch does not take.
	Commit func(env v1alpha1.Environment, branch, message string) (title, body string)
	Now    func() time.Time
	Log    *slog.Logger
	// LookEvery is how often the forge is asked about one pull request; zero: each time.
	LookEvery time.Duration
}

// patience bounds what one look at an environment's proposals takes of a cycle.
const patience = 20 * time.Second

// soon is when a merge that was not ready is tried again at first.
const soon = 5 * time.Second

// rest is how long a forge is left alone that does not answer, or asks to be. A cycle takes traffic back, and should
// not wait for it.
const rest = time.Minute

// updateEvery is how often the body of a pull request follows the facts, and mostUpdates how many do in one look.
const (
	updateEvery = 5 * time.Minute
	mostUpdates = 4
)

// Manager is a reconcile.Proposer. It is used by one goroutine at a time.
type Manager struct {
	Config
	environments map[string]*environment
	// until is when the forge is asked again.
	until time.Time
}

// environment is what is known of one environment.
type environment struct {
	// looked says that its branches were listed once, and open that there are some.
	looked, open bool
	// output says that commits are proposed, or may be.
	output    bool
	reviews   map[rollout.Name]rollout.Review
	approvers map[rollout.Name]rollout.Approver
	files     map[rollout.Name]*file
}

// file is what was last seen and written of one worker deployment's pull request.
type file struct {
	seen     forge.PullRequest
	at       time.Time         // seen
	before   forge.PullRequest // that it took the place of, as long as that has no link to it
	written  string            // title and body
	when     time.Time         // written
	status   string            // the commit that has one, and what it says
	finished int64             // the pull request for which all steps of opening one are done
	ordered  string            // what is to be merged by itself: see order; nothing, or "" where that is not known
	tried    string            // the commit that could not be merged yet
	last     time.Time         // that it was tried
	// how long nothing is tried then, and how long in fact: less where something happened at the forge
	pause, wait time.Duration
	left        string    // the commit of others that is left alone
	ended       int64     // the closed pull request that says why it is closed
	trouble     string    // that was told last
	until       time.Time // when it is tried again, after it was refused
	merged      int64     // the pull request that was seen merged
	current     string    // the tip that is up to date, and the base that it is up to date with
	title       string    // of what was proposed
	vetting     string    // the routing.yaml whose approval is asked about
	asked       time.Time // about that for the first time
}

// New makes a Manager.
func New(c Config) *Manager { return &Manager{Config: c, environments: map[string]*environment{}} }

// LookAgain says that something happened at the forge: the next Propose asks it about each pull request, however short
// ago it did.
func (m *Manager) LookAgain() {
	for _, e := range m.environments {
		for _, f := range e.files {
			f.at, f.wait = time.Time{}, min(f.wait, soon)
		}
	}
}

// Reviews gives what is known of an environment's reviews, and who approved what is proposed in it. It does not ask the
// forge.
func (m *Manager) Reviews(name string) (map[rollout.Name]rollout.Review, map[rollout.Name]rollout.Approver) {
	if e := m.environments[name]; e != nil {
		return e.reviews, e.approvers
	}
	return nil, nil
}

// Propose brings the branches and pull requests of an environment in line with what was decided, and looks what became
// of them. It reports whether people did something, or are told something, that the next decision should know. What
// goes wrong is told, and tried again the next time; it keeps nothing else up.
func (m *Manager) Propose(ctx context.Context, world rollout.EnvironmentWorld,
	decisions []*rollout.Decision) (news bool) {
	name := world.Environment.Name
	e := m.environment(name)
	m.outputIsDone(ctx, e, world)
	asks := slices.ContainsFunc(decisions, func(x *rollout.Decision) bool {
		return x.Plan.Review != nil || x.Plan.Approving != nil
	})
	if !asks && e.looked && !e.open || m.Now().Before(m.until) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	there, err := m.Branches.Proposals(ctx, name)
	if err != nil {
		m.Log.WarnContext(ctx, "proposals could not be looked at", "environment", name, "error", err)
		return false
	}
	l := &look{Manager: m, environment: e, world: world, there: there}
	return l.all(ctx, decisions)
}

// environment is what is known of an environment.
func (m *Manager) environment(name string) *environment {
	e := m.environments[name]
	if e == nil {
		e = &environment{reviews: map[rollout.Name]rollout.Review{}, approvers: map[rollout.Name]rollout.Approver{},
			files: map[rollout.Name]*file{}}
		m.environments[name] = e
	}
	return e
}

// look is one pass over an environment.
type look struct {
	*Manager
	*environment
	world rollout.EnvironmentWorld
	there map[rollout.Name]gitops.Proposed
	news  bool
	// updates are how many bodies were made anew, and questions how many pull requests were asked for one by one.
	// takenBack is how many orders of an earlier run were taken back.
	updates, questions, takenBack int
	// pulls are the open pull requests by their branches, once all were asked for.
	pulls map[string]forge.PullRequest
}

func (l *look) all(ctx context.Context, decisions []*rollout.Decision) bool {
	decided := map[rollout.Name]bool{}
	for _, x := range l.oldestFirst(decisions) {
		n := x.Plan.Deployment
		decided[n] = true
		err := l.vet(ctx, x, l.there[n])
		switch was, there := l.there[n]; {
		case l.Now().Before(l.until): // it was found out in this pass
		case l.files[n] != nil && l.Now().Before(l.files[n].until):
		case x.Plan.Review != nil:
			err = errors.Join(err, l.ask(ctx, x, was))
		case l.waits(x, was): // nothing can be said of it now
			err = errors.Join(err, l.keepsWaiting(ctx, x, was))
		case there:
			err = errors.Join(err, l.withdraw(ctx, n, was, x.Plan.Status))
		default:
			l.forget(n)
		}
		l.tell(ctx, n, err)
	}
	for n, was := range l.there { // of worker deployments that are gone
		if !decided[n] && !l.recorded(n, was) && !l.Now().Before(l.until) {
			l.tell(ctx, n, l.withdraw(ctx, n, was, nil))
		}
	}
	l.looked, l.open = true, len(l.there) > 0
	return l.news
}

// oldestFirst has those first that were looked at the longest ago. So a look that is cut short does not begin with the
// same ones each time.
func (l *look) oldestFirst(decisions []*rollout.Decision) []*rollout.Decision {
	at := func(x *rollout.Decision) (t time.Time) {
		if f := l.files[x.Plan.Deployment]; f != nil {
			t = f.at
		}
		return t
	}
	out := slices.Clone(decisions)
	slices.SortStableFunc(out, func(a, b *rollout.Decision) int { return at(a).Compare(at(b)) })
	return out
}

// recorded reports whether a record that nothing was decided about has what a branch proposes. One that proposes
// anything is never partial.
func (l *look) recorded(n rollout.Name, was gitops.Proposed) bool {
	at, ok := rollout.EntryAt(l.world.Entries, n)
	if !ok || l.world.Entries[at].Full == nil {
		return false
	}
	routing := l.world.Entries[at].Full.Record.Routing
	return routing != nil && l.proposed(n, &routing.Spec, was)
}

// waits reports whether a decision leaves a proposal's branch as it is. Then it wrote no record, or one that has that
// proposal and asks for no review just now.
func (l *look) waits(x *rollout.Decision, was gitops.Proposed) bool {
	return x.Plan.Record == nil && !x.Plan.Remove || l.proposed(x.Plan.Deployment, x.Plan.Record, was)
}

// proposed reports whether a record has what a branch proposes, or anything where there is no branch.
func (l *look) proposed(n rollout.Name, rec *v1alpha1.RoutingSpec, was gitops.Proposed) bool {
	return slices.ContainsFunc(rollout.ReviewedProposals(rec), func(p rollout.ReviewedProposal) bool {
		return was.Branch == "" || was.Theirs || was.ID == l.id(n, p)
	})
}

// tell says what went wrong, once.
func (l *look) tell(ctx context.Context, n rollout.Name, err error) {
	if err == nil || errors.Is(err, rollout.ErrMoved) { // the next cycle sees what moved
		return
	}
	var (
		away     *forge.UnavailableError
		limit    *forge.RateLimitError
		notReady *forge.NotReadyError
		partial  *forge.PartialError
		refused  *forge.RefusedError
	)
	switch {
	case errors.As(err, &limit):
		l.until = limit.Until
	case errors.As(err, &away), ctx.Err() != nil:
		l.until = l.Now().Add(rest)
	case errors.As(err, &notReady), errors.As(err, &partial): // it goes on without
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
	delete(l.approvers, n)
}

// know keeps what became of a proposal.
func (l *look) know(n rollout.Name, r rollout.Review) {
	if was, ok := l.reviews[n]; was != r || !ok && r != (rollout.Review{}) {
		l.news = true
	}
	l.reviews[n] = r
}

// id names a proposal on its branch.
func (l *look) id(n rollout.Name, p rollout.ReviewedProposal) string {
	sum := sha256.Sum256([]byte(l.world.Environment.Name + "\n" + n.String() + "\n" + p.Key))
	return hex.EncodeToString(sum[:16])
}

// ask proposes what a decision waits for.
func (l *look) ask(ctx context.Context, x *rollout.Decision, was gitops.Proposed) error {
	n, f, recorded := x.Plan.Deployment, l.file(x.Plan.Deployment), x.Plan.Review.Proposal
	id, said := l.id(n, recorded), rollout.Review{Since: recorded.Since, JobID: recorded.JobID}
	pull, err := l.pull(ctx, n, was, recorded.Since.Add(-back))
	if err != nil {
		return err
	}
	if was, err = l.over(ctx, was, pull); err != nil {
		return err
	}
	about := l.about(n, recorded, pull) || pull.Number != 0 && was.ID == id && pull.HeadCommit != "" &&
		pull.HeadCommit == was.Tip
	if about && pull.State == forge.StateClosed {
		by, err := l.closedBy(ctx, pull.Number)
		if err != nil {
			return err
		}
		if !by.Self { // the branch goes when the hold is in Git
			said.URL, said.Rejected, said.By = pull.URL, true, by.Login
			l.know(n, said)
			return nil
		}
	}
	switch {
	case about && pull.State == forge.StateMerged && f.merged != pull.Number:
		f.merged = pull.Number
		return nil // the next cycle reads what that made of the branch; if it still asks then, it went elsewhere
	case was.Theirs:
		say := forge.Status{State: forge.StatusSuccess, Description: leftAlone}
		switch open := pull.Number != 0 && pull.State == forge.StateOpen; {
		case open && about:
			said.URL = pull.URL
		case open: // to close it says nothing of this proposal, which it did not show
			say = forge.Status{State: forge.StatusFailure, Description: outdated}
		}
		l.know(n, said)
		return l.leave(ctx, n, was, say)
	}
	title := l.Title(x)
	open := pull.State == forge.StateOpen && pull.Number != 0
	superseded := open && was.ID != id
	if superseded {
		change := forge.Change{Close: true, Comment: notNext + " Another proposal takes its place."}
		if err := l.Forge.Update(ctx, pull.Number, change); err != nil {
			return err
		}
	}
	tip, err := l.propose(ctx, f, was, gitops.Proposal{Environment: l.world.Environment, Deployment: n, ID: id,
		Dir: x.Plan.Dir, Message: title + "\n\nMerging this approves it: it is decided again before anything is done.",
		Edit: func(routing []byte) ([]byte, error) { return l.Edit(routing, *x.Plan.Review) },
		Same: func(was, is []byte) bool { return open && !superseded && l.Same(was, is) && l.reviewed(ctx, pull) }})
	if err != nil {
		return err
	}
	l.there[n] = gitops.Proposed{Branch: rollout.ProposalBranch(l.world.Environment.Name, n), Tip: tip, ID: id}
	if !open || superseded {
		f.before = pull
		body := l.Body(ctx, l.world, x)
		if pull, err = l.openPull(ctx, n, l.there[n].Branch, title, body); err != nil {
			return err
		}
		f.written, f.when = title+"\n"+body, l.Now()
	}
	f.see(pull)
	f.title, said.URL = title, pull.URL
	l.know(n, said)
	return errors.Join(l.finish(ctx, n, f), l.link(ctx, f), l.update(ctx, f, x),
		l.status(ctx, f, tip, forge.Status{State: forge.StatusSuccess, Description: allowed}), l.merge(ctx, f, tip))
}

// reviewed reports whether somebody approved a pull request, or may have: who did would be asked once more by another
// commit.
func (l *look) reviewed(ctx context.Context, pull forge.PullRequest) bool {
	details, err := l.Forge.Get(ctx, pull.Number)
	return err != nil || len(details.Approvals) > 0
}

// about reports whether a pull request is about a proposal: whether that is written down, or will be. One that was
// opened for an earlier proposal of the branch is not.
func (l *look) about(n rollout.Name, p rollout.ReviewedProposal, pull forge.PullRequest) bool {
	said := l.reviews[n]
	return pull.Number != 0 && (pull.URL == p.PullRequest || pull.URL == said.URL && said.About(p))
}

// propose brings the branch up to date, which takes a question to the server unless nothing moved since that was asked
// last.
func (l *look) propose(ctx context.Context, f *file, was gitops.Proposed, p gitops.Proposal) (string, error) {
	now := was.Tip + " " + l.world.Base
	if was.ID == p.ID && !was.Theirs && f.current == now {
		return was.Tip, nil
	}
	tip, err := l.Branches.Propose(ctx, p, was)
	if err != nil { // what the branch holds is unknown
		return "", errors.Join(err, l.notByItself(ctx, f))
	}
	f.current = tip + " " + l.world.Base
	return tip, nil
}

// update lets title and body follow the facts.
func (l *look) update(ctx context.Context, f *file, x *rollout.Decision) error {
	if f.seen.Number == 0 || !f.when.IsZero() && l.Now().Sub(f.when) < updateEvery || l.updates == mostUpdates {
		return nil
	}
	l.updates++
	title, body := f.title, l.Body(ctx, l.world, x)
	text := title + "\n" + body
	same := strings.TrimSpace(strings.ReplaceAll(f.seen.Body, "\r\n", "\n")) == strings.TrimSpace(body) &&
		f.seen.Title == title
	if f.written != text && (f.written != "" || !same) {
		if err := l.Forge.Update(ctx, f.seen.Number, forge.Change{Title: title, Body: body}); err != nil {
			return err
		}
	}
	f.written, f.when = text, l.Now()
	return nil
}

// withdraw takes back a proposal that is not made any more.
func (l *look) withdraw(ctx context.Context, n rollout.Name, was gitops.Proposed,
	status *v1alpha1.WorkerDeploymentStatus) error {
	if f := l.file(n); !was.Theirs {
		f.at = time.Time{} // it may be merged since
	} else if f.left == was.Tip && l.Now().Sub(f.at) < l.LookEvery {
		return nil
	}
	pull, err := l.pull(ctx, n, was, l.Now().Add(-past))
	if err != nil {
		return err
	}
	if was.Theirs && !merged(was, pull) {
		if err := l.notByItself(ctx, l.file(n)); err != nil {
			return err
		}
		l.file(n).left = was.Tip
		return nil
	}
	was.Theirs = false
	if err := l.end(ctx, l.file(n), ending{was, pull, notNext + because(status)}); err != nil {
		return err
	}
	if err := l.Branches.Withdraw(ctx, was); err != nil {
		return err
	}
	delete(l.there, n)
	l.forget(n)
	return nil
}

// notNext begins what is said of a proposal that ends without a merge.
const notNext = "This does not come next any more."

// ending is a branch that goes, with the pull request from it, and why.
type ending struct {
	was  gitops.Proposed
	pull forge.PullRequest
	why  string
}

// end closes the pull request of a branch that goes, and says why. One that the forge closed by itself is told why,
// too: forges do so when a branch goes, and Gitea may be so late that it closes the next pull request of the same
// branch.
func (l *look) end(ctx context.Context, f *file, e ending) error {
	change := forge.Change{Close: true, Comment: e.why}
	switch e.pull.State {
	case forge.StateOpen:
	case forge.StateClosed:
		if f.ended == e.pull.Number || e.pull.HeadCommit != e.was.Tip {
			return nil
		}
		by, err := l.closedBy(ctx, e.pull.Number)
		if err != nil || !by.Self {
			return err
		}
		change.Close = false
	default: // merged, or none
		return nil
	}
	if err := l.Forge.Update(ctx, e.pull.Number, change); err != nil {
		return err
	}
	f.ended = e.pull.Number
	return nil
}
