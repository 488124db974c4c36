package gitops

import (
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/index"
)

// remembered is what a Repository remembers of what it surveyed.
type remembered struct {
	Specs, Records []index.Remembered
	// Made are the branches of proposals that hold what the bot put there.
	Made []rememberedProposal
	// Configuration is the last one that could be used, as JSON: there, a list without elements is not the same as
	// none.
	Configuration string
}

type rememberedProposal struct{ Branch, Tip, On string }

// Remember gives what surveys found out, and what an earlier run did where there was none yet.
func (r *Repository) Remember() any {
	out := remembered{Configuration: r.last.Remember()}
	out.Specs, out.Records = r.survey.reader.Remember()
	for branch, is := range r.made {
		out.Made = append(out.Made, rememberedProposal{branch, is.tip.String(), is.on})
	}
	return out
}

// Recall takes what surveys of an earlier run found out.
func (r *Repository) Recall(decode func(into any) error) error {
	var known remembered
	if err := decode(&known); err != nil {
		return err
	}
	if err := r.last.Recall(known.Configuration); err != nil {
		return err
	}
	r.survey.reader.Recall(known.Specs, known.Records)
	for _, p := range known.Made {
		r.made[p.Branch] = made{plumbing.NewHash(p.Tip), p.On}
	}
	return nil
}
