package pullrequest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/gitops/forge/github"
	"github.com/rampart-gitops/rampart/gitops/forge/gitlab"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/pullrequest"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/test/forgetest"
	"github.com/rampart-gitops/rampart/test/githubtest"
	"github.com/rampart-gitops/rampart/test/gitlabtest"
)

// What the bot says on a branch's last commit, and of a pull request that it closes.
const (
	allowed   = "policy allows it, once it is approved"
	leftAlone = "it has commits of others and is left alone; what is merged is decided again"
	outdated  = "it has commits of others, and is about an earlier proposal: close its pull request to see what is proposed now"
	notNext   = "This does not come next any more."
)

// rest is how long the bot leaves a forge alone that refused something.
const rest = time.Minute

var checkout = rollout.Name{Namespace: "shop", Name: "checkout"}

// life is a manager with a real repository, on a forge that keeps state. The end-to-end tests do the same on a Gitea.
type life struct {
	*forgetest.Site
	manager *pullrequest.Manager
	repo    *gitops.Repository
	now     time.Time
	world   rollout.EnvironmentWorld
	// troubles are the warnings since the last cycle.
	troubles bytes.Buffer
	// asks is the decision that is passed, with the record as it is in Git, and said what became of it in the last
	// cycle.
	asks *rollout.Decision
	said rollout.Review
}

const (
	lifeRecord = "deploy/shop/checkout/routing.yaml"
	lifeBranch = "rampart/prod/shop/checkout"
	// lifeAddress is what a record has once it is known where it is reviewed.
	lifeAddress = "address: known\n"
)

func newLife(t *testing.T, s *forgetest.Site) *life {
	s.T = t
	s.Git.Commit(gittest.Commit{Write: map[string]string{lifeRecord: "desired: none\n"}})
	repo, err := gitops.Open(gitops.Config{URL: s.Git.URL(), Branch: "main", CacheDir: t.TempDir(), Author: "rampart", Email: "rampart@example.com",
		Log: slog.New(slog.DiscardHandler), Now: s.Now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, repo.Close()) })
	l := &life{Site: s, repo: repo, world: rollout.EnvironmentWorld{Environment: v1alpha1.Environment{Name: "prod"}, Base: "base"}}
	l.start()
	l.propose("10%")
	return l
}

// start has another run of the bot begin.
func (l *life) start() {
	l.Forge, l.now = l.As(l.Bot.Token), l.Now()
	l.manager = pullrequest.New(pullrequest.Config{Branches: l.repo, Forge: l.Forge, Base: "main", Now: func() time.Time { return l.now },
		Log: slog.New(slog.NewTextHandler(&l.troubles, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Edit: func(routing []byte, ask rollout.ReviewAsk) ([]byte, error) {
			return []byte(strings.Replace(string(routing), "none", ask.Proposal.Key, 1)), nil
		},
		Same:  func(was, is []byte) bool { return bytes.Equal(was, bytes.Replace(is, []byte(lifeAddress), nil, 1)) },
		Title: func(*rollout.Decision) string { return "ramp to " + l.asks.Plan.Review.Proposal.Key },
		Body:  func(context.Context, rollout.EnvironmentWorld, *rollout.Decision) string { return "body" }})
}

func (l *life) get(number int64) forge.Details {
	l.Helper()
	d, err := l.Forge.Get(l.Context(), number)
	require.NoError(l, err)
	return d
}

// propose decides that something else is asked for.
func (l *life) propose(what string) {
	since := v1alpha1.NewTime(l.Now())
	l.asks = &rollout.Decision{Plan: rollout.Plan{Deployment: checkout, Dir: "deploy/shop/checkout",
		Record: &v1alpha1.RoutingSpec{Proposal: &v1alpha1.RecordedProposal{BuildID: "v2", TemplateHash: "h", To: 10, Since: since}},
		Review: &rollout.ReviewAsk{Proposal: rollout.ReviewedProposal{Key: what, Since: since}}}}
}

// quiet is a decision that asks for nothing.
func quiet() *rollout.Decision {
	return &rollout.Decision{Plan: rollout.Plan{Deployment: checkout, Record: &v1alpha1.RoutingSpec{}}}
}

// cycle runs one cycle, after which what was learned is in the record.
func (l *life) cycle(decisions ...*rollout.Decision) {
	l.Helper()
	if decisions == nil {
		decisions = []*rollout.Decision{l.asks}
	}
	l.now = l.now.Add(rest)
	l.world.Base = l.Git.Tip("main")
	require.Empty(l, l.manage(decisions...))
	reviews, _ := l.manager.Reviews("prod")
	l.said = reviews[checkout]
	if l.said.URL != "" {
		l.asks.Plan.Review.Proposal.PullRequest = l.said.URL
	}
}

// manage runs the manager, and gives its warnings.
func (l *life) manage(decisions ...*rollout.Decision) string {
	l.troubles.Reset()
	l.manager.Propose(l.Context(), l.world, decisions)
	return l.troubles.String()
}

// others adds a commit of a person's.
func (l *life) others() { l.Push(lifeBranch, nil) }

// forges puts another commit in the place of the bot's, with more in it, and with the seal that anybody can make.
func (l *life) forges() {
	tip := l.Git.Tip(lifeBranch)
	parent, text := l.Git.Git("rev-parse", tip+"^"), l.Git.Git("log", "-1", "--format=%B", tip)
	tree := l.Git.Git("rev-parse", l.Git.Commit(gittest.Commit{Branch: "scratch", Parent: tip, Write: map[string]string{"rampart.yaml": "policies: []\n"}})+"^{tree}")
	_, id, _ := strings.Cut(text, "Rampart-Proposal: ")
	id, _, _ = strings.Cut(id, "\n")
	sum := sha256.Sum256([]byte(id + "\n" + tree + "\n" + parent))
	text, _, _ = strings.Cut(text, "Rampart-Seal: ")
	text += "Rampart-Seal: " + hex.EncodeToString(sum[:16]) + "\n"
	l.Git.Git("update-ref", "refs/heads/"+lifeBranch, l.Git.Git("commit-tree", "-p", parent, "-m", text, tree))
}

// ours is what the branch is to hold.
func (l *life) ours() {
	l.Helper()
	require.Equal(l, lifeRecord, l.Git.Git("diff", "--name-only", "main", lifeBranch))
	require.Equal(l, l.Git.Tip(lifeBranch), l.Look(1).HeadCommit)
	require.NotNil(l, l.Look(1).Auto)
}

// waiting runs cycles until the merge of a pull request is ordered, which has to wait for a check.
func (l *life) waiting(method v1alpha1.MergeMethod) {
	l.Helper()
	l.SetRules(func(r *forgetest.Rules) { r.Checks = []string{"ci"} })
	l.world.Environment.PullRequests.AutoMerge = method
	require.Empty(l, l.manage(l.asks))
	l.Check(l.Git.Tip(lifeBranch), "ci", "pending")
	l.cycle()
	require.NotNil(l, l.Look(1).Auto)
}

// sees is what is to be seen of a pull request.
func (l *life) sees(number int64, state, title string) {
	l.Helper()
	p := l.Look(number)
	require.Equal(l, []string{state, title}, []string{p.State, p.Title})
}

// says compares the comments on a pull request.
func (l *life) says(number int64, want ...string) {
	l.Helper()
	var got []string
	for _, c := range l.Look(number).Comments {
		got = append(got, c.Body)
	}
	require.Equal(l, want, got)
}

// lives are what becomes of a proposal, at each forge.
var lives = map[string]func(l *life){
	"opened, updated, merged": func(l *life) {
		l.cycle()
		l.sees(1, forgetest.Open, "ramp to 10%")
		require.Equal(l, l.Git.Tip(lifeBranch), l.Look(1).HeadCommit)
		require.Equal(l, allowed, l.Status(l.Git.Tip(lifeBranch), "rampart/prod").Description)
		require.Contains(l, l.said.URL, "/1")
		l.Git.Commit(gittest.Commit{Write: map[string]string{lifeRecord: "desired: none\nmore: true\n"}})
		l.cycle()
		require.Equal(l, l.Git.Tip("main"), l.Git.Git("rev-parse", lifeBranch+"^"))
		require.Equal(l, l.Git.Tip(lifeBranch), l.Look(1).HeadCommit)
		l.MergePull(1, l.Person, forge.MethodSquash)
		require.Equal(l, "desired: 10%\nmore: true\n", l.Git.Files("main")[lifeRecord])
		l.cycle()
		l.cycle(quiet())
		require.Empty(l, l.Git.Git("branch", "--list", lifeBranch))
		l.sees(1, forgetest.Merged, "ramp to 10%")
	},
	"approved before its address is written down": func(l *life) {
		l.cycle()
		first := l.Git.Tip(lifeBranch)
		l.Say(1, l.Person, "APPROVED")
		for _, started := range []bool{false, true} {
			l.Git.Commit(gittest.Commit{Write: map[string]string{lifeRecord: "desired: none\n" + lifeAddress, "other": fmt.Sprint(started)}})
			if started {
				l.start()
			}
			l.cycle()
			require.Equal(l, first, l.Git.Tip(lifeBranch), "what was approved stays")
			require.Len(l, l.get(1).Approvals, 1)
		}
		l.Git.Commit(gittest.Commit{Write: map[string]string{lifeRecord: "desired: none\nmore: true\n"}})
		l.cycle()
		require.NotEqual(l, first, l.Git.Tip(lifeBranch), "it is about something else")
	},
	"its address is written down before anybody approved it": func(l *life) {
		l.cycle()
		l.Git.Commit(gittest.Commit{Write: map[string]string{lifeRecord: "desired: none\n" + lifeAddress}})
		l.cycle()
		require.Equal(l, l.Git.Tip("main"), l.Git.Git("rev-parse", lifeBranch+"^"), "it goes on top of its base")
		require.Equal(l, "desired: 10%\n"+lifeAddress, l.Git.Files(lifeBranch)[lifeRecord])
	},
	"superseded": func(l *life) {
		l.cycle()
		l.propose("100%")
		l.cycle()
		l.sees(1, forgetest.Closed, "ramp to 10%")
		l.sees(2, forgetest.Open, "ramp to 100%")
		l.says(1, notNext+" Another proposal takes its place.", "Superseded by "+l.said.URL)
		require.Contains(l, l.said.URL, "/2")
		require.Equal(l, "desired: 100%\n", l.Git.Files(lifeBranch)[lifeRecord])
		l.cycle()
		require.False(l, l.said.Rejected, "it was the bot itself that closed the first one")
	},
	"closed by a person": func(l *life) {
		l.cycle()
		l.ClosePull(1, l.Person)
		l.cycle()
		require.Equal(l, rollout.Review{Since: l.said.Since, URL: l.said.URL, Rejected: true, By: l.Person.Login}, l.said)
		require.NotEmpty(l, l.Git.Git("branch", "--list", lifeBranch), "until the hold is in Git")
		l.cycle(quiet())
		require.Empty(l, l.Git.Git("branch", "--list", lifeBranch))
	},
	"withdrawn": func(l *life) {
		l.cycle()
		l.cycle(quiet())
		l.sees(1, forgetest.Closed, "ramp to 10%")
		l.says(1, notNext)
		require.Empty(l, l.Git.Git("branch", "--list", lifeBranch))
	},
	"closed by the forge, late, with a branch that went": func(l *life) {
		l.cycle()
		l.ClosePull(1, l.Bot)
		l.cycle()
		l.sees(2, forgetest.Open, "ramp to 10%")
		l.says(1, "Superseded by "+l.said.URL)
		l.ClosePull(2, l.Bot)
		l.cycle(quiet())
		l.says(2, notNext)
		require.Empty(l, l.Git.Git("branch", "--list", lifeBranch))
	},
	"a person's, to another branch": func(l *life) {
		l.Branch("release")
		l.cycle()
		l.ClosePull(1, l.Bot)
		theirs, err := l.As(l.Person.Token).Open(l.Context(), forge.Opening{Title: "backport", Head: lifeBranch, Base: "release"})
		require.NoError(l, err)
		l.start()
		l.world.Environment.PullRequests.AutoMerge = "Squash"
		l.cycle()
		require.Contains(l, l.said.URL, "/3", "one of its own")
		l.sees(theirs.Number, forgetest.Open, "backport")
		require.Nil(l, l.Look(theirs.Number).Auto)
		l.ClosePull(theirs.Number, l.Person)
		l.cycle()
		require.False(l, l.said.Rejected)
	},
	"others' commits, about what is proposed": func(l *life) {
		l.cycle()
		l.others()
		l.cycle()
		require.Contains(l, l.said.URL, "/1")
		require.Equal(l, leftAlone, l.Status(l.Git.Tip(lifeBranch), "rampart/prod").Description)
		l.ClosePull(1, l.Person)
		l.cycle()
		require.True(l, l.said.Rejected)
	},
	"others' commits, before it was written down": func(l *life) {
		l.cycle()
		l.asks.Plan.Review.Proposal.PullRequest = ""
		l.others()
		l.cycle()
		require.Contains(l, l.said.URL, "/1", "this run opened it")
	},
	"others' commits, about an earlier proposal": func(l *life) {
		l.cycle()
		l.others()
		l.propose("100%")
		l.cycle()
		require.Equal(l, rollout.Review{Since: l.said.Since}, l.said, "it is not about this one")
		status := l.Status(l.Git.Tip(lifeBranch), "rampart/prod")
		require.Equal(l, outdated, status.Description)
		require.Contains(l, []string{"failure", "failed"}, status.State)
		l.sees(1, forgetest.Open, "ramp to 10%")
		l.ClosePull(1, l.Person)
		l.cycle()
		require.False(l, l.said.Rejected, "nobody saw the new one")
		require.Contains(l, l.said.URL, "/2")
		l.sees(2, forgetest.Open, "ramp to 100%")
		require.Equal(l, "desired: 100%\n", l.Git.Files(lifeBranch)[lifeRecord])
	},
	"merged by itself": func(l *life) {
		l.waiting("Squash")
		l.Check(l.Git.Tip(lifeBranch), "ci", "success")
		l.cycle(quiet())
		l.sees(1, forgetest.Merged, "ramp to 10%")
	},
	"not by itself any more": func(l *life) {
		l.waiting("Squash")
		l.world.Environment.PullRequests.AutoMerge = ""
		l.cycle()
		require.Nil(l, l.Look(1).Auto)
		l.sees(1, forgetest.Open, "ramp to 10%")
	},
	"not by itself any more, after a start": func(l *life) {
		l.waiting("Squash")
		l.start()
		l.world.Environment.PullRequests.AutoMerge = ""
		l.cycle()
		require.Nil(l, l.Look(1).Auto)
	},
	"not by itself any more, while it waits": func(l *life) {
		l.waiting("Squash")
		l.start()
		l.world.Environment.PullRequests.AutoMerge = ""
		l.cycle(&rollout.Decision{Plan: rollout.Plan{Deployment: checkout}})
		require.Nil(l, l.Look(1).Auto)
	},
	"a person orders it": func(l *life) {
		l.waiting("Squash")
		l.world.Environment.PullRequests.AutoMerge = ""
		l.cycle()
		_, err := l.As(l.Person.Token).Merge(l.Context(), 1, forge.Merge{When: forge.WhenReady, Method: forge.MethodSquash, Commit: l.Git.Tip(lifeBranch)})
		require.NoError(l, err)
		l.start()
		l.world.Environment.PullRequests.AutoMerge = ""
		l.cycle()
		require.Equal(l, l.Person.Login, l.Look(1).Auto.By.Login, "it stays")
	},
	"by another method": func(l *life) {
		l.waiting("Merge")
		l.world.Environment.PullRequests.AutoMerge = "Squash"
		l.cycle()
		require.Contains(l, l.Look(1).Auto.Method, "squash")
	},
	"by a method that is not allowed": func(l *life) {
		l.waiting("Merge")
		l.SetRules(func(r *forgetest.Rules) { r.Methods = []string{"merge"} })
		l.world.Environment.PullRequests.AutoMerge = "Squash"
		l.now = l.now.Add(rest)
		require.Contains(l, l.manage(l.asks), "merging by squash")
		require.Nil(l, l.Look(1).Auto)
	},
	"others' commits are not merged by themselves": func(l *life) {
		l.waiting("Squash")
		l.others()
		l.cycle()
		require.Nil(l, l.Look(1).Auto)
	},
	"others' commits are not merged by themselves, once it is over": func(l *life) {
		l.waiting("Squash")
		l.others()
		l.cycle(quiet())
		require.Nil(l, l.Look(1).Auto)
		l.sees(1, forgetest.Open, "ramp to 10%")
	},
	"what is forged is written over": func(l *life) {
		l.waiting("Squash")
		for range 2 {
			l.forges()
			l.cycle()
			l.Check(l.Git.Tip(lifeBranch), "ci", "pending")
			l.cycle()
			l.ours()
			l.start() // the next run knows no tip
			l.world.Environment.PullRequests.AutoMerge = "Squash"
		}
	},
	"what is forged is not merged by itself": func(l *life) {
		l.waiting("Squash")
		l.forges()
		l.manager.Edit = func([]byte, rollout.ReviewAsk) ([]byte, error) { return nil, errors.New("cannot be made") }
		require.Contains(l, l.manage(l.asks), "cannot be made")
		require.Nil(l, l.Look(1).Auto)
	},
	"to another branch from now on": func(l *life) {
		l.manager.LookEvery = time.Hour
		l.cycle()
		l.Git.Git("branch", "release", "main")
		l.world.Environment.Output.Branch = "release"
		l.cycle()
		require.Contains(l, l.said.URL, "/2")
		require.Equal(l, "release", l.Look(2).Base)
	},
	"others' commits are not merged by themselves, while it waits": func(l *life) {
		l.waiting("Squash")
		l.others()
		l.cycle(&rollout.Decision{Plan: rollout.Plan{Deployment: checkout}})
		require.Nil(l, l.Look(1).Auto)
	},
}

func TestLivesOfPullRequestsOnEachForge(t *testing.T) {
	for name, site := range map[string]func(*testing.T) *forgetest.Site{
		"GitHub": func(t *testing.T) *forgetest.Site {
			server := githubtest.Start(t)
			s := forgetest.Simulated(t, server.World, server.Server)
			s.Kind, s.Make = forge.KindGitHub, func(c forge.Config) (forge.Forge, error) { return github.New(c) }
			return s
		},
		"GitLab": func(t *testing.T) *forgetest.Site {
			server := gitlabtest.Start(t)
			s := forgetest.Simulated(t, server.World, server.Server)
			s.Kind, s.Make = forge.KindGitLab, func(c forge.Config) (forge.Forge, error) { return gitlab.New(c) }
			return s
		},
	} {
		for what, live := range lives {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				live(newLife(t, site(t)))
			})
		}
	}
}
