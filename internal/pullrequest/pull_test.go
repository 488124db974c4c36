package pullrequest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// busy is a forge with many pull requests, which keeps what it was asked.
type busy struct {
	forge.None
	pulls []forge.PullRequest
	asked []forge.Filter
	// answers is how many questions it answers before it goes away; negative: all.
	answers int
}

func (b *busy) List(_ context.Context, f forge.Filter) ([]forge.PullRequest, error) {
	if b.answers == 0 {
		return nil, &forge.UnavailableError{Op: "list"}
	}
	b.answers--
	b.asked = append(b.asked, f)
	var out []forge.PullRequest
	for _, p := range slices.Backward(b.pulls) {
		if (f.Head == "" || p.Head == f.Head) && (!f.Open || p.State == forge.StateOpen) && !p.Updated.Before(f.Since) {
			out = append(out, p)
		}
	}
	return out, nil
}

func (b *busy) Open(_ context.Context, o forge.Opening) (forge.PullRequest, error) {
	p := forge.PullRequest{Number: int64(len(b.pulls) + 1), URL: "to " + o.Head, State: forge.StateOpen, Head: o.Head, HeadCommit: "tip", Updated: time.Now()}
	b.pulls = append(b.pulls, p)
	return p, nil
}

func manyAsk(n int) (all []*rollout.Decision) {
	for i := range n {
		one := asking()
		one.Plan.Deployment.Name = fmt.Sprintf("checkout-%03d", i)
		all = append(all, one)
	}
	return all
}

// Where much waits for people the forge is asked for all open pull requests at once. It is asked one by one for the few
// proposals without an open one.
func TestManyProposals(t *testing.T) {
	on, all := &busy{answers: -1}, manyAsk(100)
	d := newFixture(on)
	d.cycle(t, all...)
	require.Len(t, on.pulls, 100)
	on.asked = nil
	d.cycle(t, all...)
	require.Len(t, on.asked, fewQuestions+1)
	require.Equal(t, forge.Filter{Base: "main", Open: true}, on.asked[fewQuestions])
	require.Len(t, on.pulls, 100, "each is known again")

	on.pulls[42].State, on.asked = forge.StateClosed, nil
	d.cycle(t, all...)
	require.Len(t, on.asked, fewQuestions+2)
	last := on.asked[fewQuestions+1]
	require.Equal(t, on.pulls[42].Head, last.Head)
	require.Equal(t, all[42].Plan.Review.Proposal.Since.Add(-back), last.Since, "not through all that there ever were")
}

// A look that is cut short goes on with those that it did not get to.
func TestLookThatIsCutShortGoesOn(t *testing.T) {
	on, all := &busy{}, manyAsk(12)
	d := newFixture(on)
	for range 20 {
		on.answers = 4 // two of them: what is open, and what was closed
		d.cycle(t, all...)
		d.now = d.now.Add(rest)
	}
	require.Len(t, on.pulls, 12)
}
