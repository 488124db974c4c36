package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// knownBy are worker deployments by their names; those in capitals have a record.
func knownBy(names string) (out []*rollout.Known) {
	for name := range strings.FieldsSeq(names) {
		k := &rollout.Known{Deployment: rollout.Name{Namespace: "shop", Name: strings.ToLower(name)}}
		if name != k.Deployment.Name {
			k.Tree = "tree"
		}
		out = append(out, k)
	}
	return out
}

func namesOf(known []*rollout.Known) string {
	var out []string
	for _, k := range known {
		out = append(out, k.Deployment.Name)
	}
	return strings.Join(out, " ")
}

// begun is at the beginning of a cycle that found these in an environment.
func begun(known []*rollout.Known) *steadiness {
	s := &steadiness{}
	s.begin(rollout.World{Environments: []rollout.EnvironmentWorld{{Environment: v1alpha1.Environment{Name: "prod"}, Known: known}}})
	return s
}

func TestEachHasItsTurn(t *testing.T) {
	s := begun(nil)
	next := func(due string) string { return namesOf(s.turnOf("prod", knownBy(due), 2)) }
	require.Equal(t, "a b", next("a b"))
	require.Zero(t, s.turnIsOver("prod"))

	require.Equal(t, "a c", next("a b C d e"), "one that has a record comes first")
	require.Equal(t, "a c", next("a b C d e"), "the same in another try")
	require.False(t, s.midway("prod"))
	require.Equal(t, 3, s.turnIsOver("prod"))
	require.True(t, s.midway("prod"))
	require.Equal(t, "b f", next("a b C d e F"), "and one that came in between")
	require.Equal(t, 2, s.turnIsOver("prod"))
	require.Equal(t, "c d", namesOf(s.turnOf("test", knownBy("a b C D"), 2)), "of another environment")
	require.Equal(t, 2, s.turnIsOver("test"))
	require.Equal(t, "d", next("A C D"), "nobody has a second one, though they are not too many any more")
	require.Zero(t, s.turnIsOver("prod"), "all had their turn")
	require.False(t, s.midway("prod"))
	require.Equal(t, "a b", next("A B C D E F"), "the next cycle")

	full := knownBy("a b c")
	full[2].Full = &rollout.Snapshot{Record: rollout.Record{Tree: "tree"}}
	require.Equal(t, "a c", namesOf(s.turnOf("full", full, 2)))
}

// Who waits for a turn need not be read again once others were committed, as long as the files are the same. Who had it is let go, and who
// has none.
func TestWhoWaitsWasRead(t *testing.T) {
	snapshot := func(name string) rollout.Snapshot {
		return rollout.Snapshot{Deployment: rollout.Name{Namespace: "shop", Name: name}, SpecPath: name + ".yaml", Git: rollout.GitContext{SpecBlob: "blob"},
			Record: rollout.Record{Dir: "out/" + name, Tree: "tree"}}
	}
	found := knownBy("a b c d")
	for _, k := range found {
		full := snapshot(k.Deployment.Name)
		full.Spec = &v1alpha1.WorkerDeployment{Metadata: v1alpha1.ObjectMeta{Name: k.Deployment.Name}}
		full.Record.Files = map[string]rollout.File{"routing.yaml": {Hash: "says"}}
		k.Full = &full
	}
	s := begun(found)
	read := func(change func(*rollout.Snapshot), names ...string) (out []string) {
		var brief []rollout.Snapshot
		for _, name := range names {
			is := snapshot(name)
			is.Brief = true
			change(&is)
			brief = append(brief, is)
		}
		for _, is := range s.known("prod", brief) {
			if is.Brief {
				require.Nil(t, is.Spec)
				continue
			}
			require.Equal(t, is.Deployment.Name, is.Spec.Metadata.Name)
			require.Equal(t, "says", is.Record.Files["routing.yaml"].Hash)
			out = append(out, is.Deployment.Name)
		}
		return out
	}
	same := func(*rollout.Snapshot) {}
	require.Equal(t, []string{"a", "b", "c", "d"}, read(same, "a", "b", "c", "d", "e"))
	s.turnOf("prod", found[:3], 1)
	require.Equal(t, []string{"a", "b", "c"}, read(same, "a", "b", "c", "d"))
	for _, change := range []func(*rollout.Snapshot){
		func(s *rollout.Snapshot) { s.SpecPath = "other.yaml" }, func(s *rollout.Snapshot) { s.Git.SpecBlob = "other" },
		func(s *rollout.Snapshot) { s.Record.Tree = "other" }, func(s *rollout.Snapshot) { s.Record.Dir = "other" },
		func(s *rollout.Snapshot) { s.Deployment.Namespace = "other" },
	} {
		require.Empty(t, read(change, "a", "b", "c"))
	}
	require.Equal(t, 2, s.turnIsOver("prod"))
	require.Equal(t, []string{"b", "c"}, read(same, "a", "b", "c"))
	s.turnOf("prod", found[:3], 2)
	require.Zero(t, s.turnIsOver("prod"))
	require.Empty(t, read(same, "b", "c"))

	s = begun(found)
	s.turnOf("prod", found[:3], 3)
	require.Equal(t, []string{"a", "d"}, read(same, "a", "d"))
	require.Zero(t, s.turnIsOver("prod"), "there was one for all")
	require.Empty(t, read(same, "a", "d"))
}

// asks is a Proposer that knows who was proposed for.
type asks struct {
	*desk
	about [][]string
}

func (a *asks) Propose(_ context.Context, _ rollout.EnvironmentWorld, decisions []*Decision) bool {
	a.about = append(a.about, namesDecided(decisions))
	return false
}

// Where many have to be looked at, it is done in parts, each with a commit. Who keeps proposals is told at the end.
func TestManyAreLookedAtInTurn(t *testing.T) {
	c, desk := newCrowd(t, "a", "b", "c", "d", "e"), &asks{desk: &desk{}}
	c.most = 5
	r := c.reconciler()
	r.AtOnce, r.Proposer = 2, desk
	var earlier [][]string
	r.Decided = func(_ context.Context, decisions []*Decision) { earlier = append(earlier, namesDecided(decisions)) }
	m := logged(c.scene, r)
	report := c.once(r)
	require.Len(t, report.Commits, 3)
	require.Equal(t, 5, report.LookedAt)
	require.Equal(t, [][]string{{"a", "b"}, {"c", "d"}}, earlier)
	require.Equal(t, []string{"e"}, namesDecided(report.Decisions))
	require.Equal(t, [][]string{{"e"}}, desk.about, "of the others nobody asks anything")
	require.Len(t, m.cycles, 3, "each part is recorded at its end")
	for _, d := range c.world.Environments[0].Deployments {
		require.NotNil(t, d.Record.Routing, d.Deployment)
	}
	c.world.Environments[0].Deployments[1].Record.Routing.Spec.Proposal = &v1alpha1.RecordedProposal{BuildID: c.target(), To: 10}
	c.once(r)
	require.Equal(t, []string{"b", "e"}, desk.about[1], "one that proposes something, and those of the last part")
}

func namesDecided(decisions []*Decision) (names []string) {
	for _, d := range decisions {
		names = append(names, d.Plan.Deployment.Name)
	}
	return names
}

// One commit at a time can be proposed.
func TestWhatMayBeProposedIsNotDivided(t *testing.T) {
	c, desk := newCrowd(t, "a", "b", "c", "d", "e"), &asks{desk: &desk{}}
	c.most = 5
	c.world.Environments[0].Environment.PullRequests.OnProtectedBranch = v1alpha1.ProposeCommits
	r := c.reconciler()
	r.AtOnce, r.Proposer = 2, desk
	r.Committer = commits(func(context.Context, rollout.Commit) (string, error) {
		return "", fmt.Errorf("push: %w", rollout.ErrProtected)
	})
	c.once(r)
	require.Len(t, desk.commits, 1)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		require.True(t, slices.ContainsFunc(desk.commits[0].Changes, func(f rollout.FileChange) bool { return strings.Contains(f.Path, "/"+name+"/") }), name)
	}
	require.Empty(t, desk.about)
}

// Where the commit of some is refused, the others have their turn, and nobody's proposal is taken for one that is not there any more.
func TestRefusedTurnHoldsNoOtherUp(t *testing.T) {
	c, desk := newCrowd(t, "a", "b", "c", "d"), &asks{desk: &desk{}}
	c.most = 4
	r := c.reconciler()
	r.AtOnce, r.Proposer = 2, desk
	r.Committer = commits(func(ctx context.Context, commit rollout.Commit) (string, error) {
		if strings.Contains(commit.Changes[0].Path, "/a/") {
			return "", errors.New("refused")
		}
		return c.Commit(ctx, commit)
	})
	report, err := r.Once(t.Context())
	require.EqualError(t, err, "environment default: refused")
	require.Len(t, report.Commits, 1)
	require.Equal(t, "c", report.Decisions[0].Plan.Deployment.Name)
	require.Empty(t, desk.about)
}

// moving is a Committer of another branch than that of the specs, which moved when it is asked for the first time.
type moving struct {
	*crowd
	asked int
}

func (m *moving) Confirm(context.Context, map[string]string) (bool, error) {
	m.asked++
	return m.asked > 1, nil
}

// What was decided in a try that was given up is nobody's business.
func TestOnlyTheLastTryIsToldOf(t *testing.T) {
	c, desk := newCrowd(t, "a", "b"), &asks{desk: &desk{}}
	c.most = 2
	for i := range c.world.Environments[0].Deployments {
		c.world.Environments[0].Deployments[i].SpecPath = "spec.yaml"
	}
	c.world.Environments[0].Environment.Output.Branch = "rendered"
	r, on := c.reconciler(), &moving{crowd: c}
	r.Committer, r.Proposer = on, desk
	for on.asked == 0 { // until something is raised
		desk.about = nil
		report := c.once(r)
		require.Equal(t, []string{"a", "b"}, namesDecided(report.Decisions))
		require.Equal(t, 2, report.LookedAt)
		require.Equal(t, [][]string{{"a", "b"}}, desk.about)
	}
	require.Equal(t, 2, on.asked)
}

// away is a repository that goes away after some reads.
type away struct {
	*fleet
	reads int
}

func (a *away) Read(ctx context.Context) (rollout.World, error) {
	if a.reads--; a.reads < 0 {
		return rollout.World{}, errors.New("away")
	}
	return a.fleet.Read(ctx)
}

// A repository that goes away after the first part does not keep the traffic of the others where it is.
func TestTrafficOfLaterPartsIsTakenBackWithoutTheRepository(t *testing.T) {
	f := newFleet(t, 3)
	source := &away{fleet: f, reads: 2}
	r := f.reconciler()
	r.AtOnce, r.Source, r.Metrics = 2, source, nil
	for i := range 3 {
		f.observed[f.name(i)] = rollout.RoutingConfig{Current: f.target(), CurrentChangedAt: f.now}
	}
	_, err := r.Once(t.Context())
	require.NoError(t, err)
	source.reads = 1
	delete(f.observed, f.name(2)) // it ramps
	f.verdicts[f.name(2)] = rollback("org.errors")
	f.events = nil
	_, err = r.Once(t.Context())
	require.ErrorContains(t, err, "away")
	require.Equal(t, []string{"lower w002"}, f.events)
}

// Who asked in an earlier part is left out where the record says something else by now.
func TestStillAsking(t *testing.T) {
	name := rollout.Name{Namespace: "shop", Name: "checkout"}
	p := v1alpha1.RecordedProposal{BuildID: "v2", TemplateHash: "h", To: 10, Since: v1alpha1.NewTime(time.Date(2026, 3, 1, 11, 0, 0, 7, time.Local))}
	d := &Decision{Plan: rollout.Plan{Deployment: name, Record: &v1alpha1.RoutingSpec{Proposal: &p}, Review: &rollout.ReviewAsk{}}}
	recorded := func(p *v1alpha1.RecordedProposal) rollout.EnvironmentWorld {
		return rollout.EnvironmentWorld{Known: []*rollout.Known{{Deployment: name,
			Full: &rollout.Snapshot{Record: rollout.Record{Routing: &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{Proposal: p}}}}}}}
	}
	same, other := p, p
	same.Since = v1alpha1.NewTime(p.Since.UTC())
	other.To = 20
	require.Equal(t, []*Decision{d}, stillAsking(recorded(&same), []*Decision{d}))
	require.Empty(t, stillAsking(recorded(&other), []*Decision{d}))
	require.Empty(t, stillAsking(recorded(nil), []*Decision{d}))
	require.Empty(t, stillAsking(rollout.EnvironmentWorld{}, []*Decision{d}))
	d.Plan.Review = nil
	require.Equal(t, []*Decision{d}, stillAsking(recorded(nil), []*Decision{d}), "it asks nobody: what is there goes")
}

// An environment that goes away meanwhile takes no other's turn with it.
func TestEnvironmentsThatComeAndGo(t *testing.T) {
	c := newCrowd(t, "a", "b", "c")
	c.most = 3
	second := c.world.Environments[0]
	second.Environment.Name, second.Deployments = "second", slices.Clone(second.Deployments[:1])
	second.Deployments[0].Environment.Name = "second"
	c.world.Environments = append(c.world.Environments, second)
	r := c.reconciler()
	r.AtOnce = 2
	var of []string
	r.Committer = commits(func(_ context.Context, commit rollout.Commit) (string, error) {
		of = append(of, commit.Environment.Name)
		if len(of) == 1 {
			c.world.Environments = c.world.Environments[1:]
		}
		return "abc", nil
	})
	c.once(r)
	require.Equal(t, []string{"default", "second"}, of)
}

// commits is a Committer of nothing but commits.
type commits func(context.Context, rollout.Commit) (string, error)

func (c commits) Commit(ctx context.Context, commit rollout.Commit) (string, error) {
	return c(ctx, commit)
}

func (commits) Confirm(context.Context, map[string]string) (bool, error) { return true, nil }
