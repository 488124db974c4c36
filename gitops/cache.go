package gitops

import (
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/index"
)

// cacheData is what a Repository keeps on disk of what it surveyed.
type cacheData struct {
	Specs, Records []index.CachedEntry
	// Made are the branches of proposals that hold what the bot put there.
	Made []cachedProposal
	// Configuration is the last one that could be used, as JSON: there, a list without elements is not the same as
	// none.
	Configuration string
}

type cachedProposal struct{ Branch, Tip, On string }

// CacheData gives what surveys found out, and what an earlier run did where there was none yet.
func (r *Repository) CacheData() any {
	out := cacheData{Configuration: r.last.CacheData()}
	out.Specs, out.Records = r.survey.reader.CacheData()
	for branch, is := range r.made {
		out.Made = append(out.Made, cachedProposal{branch, is.tip.String(), is.on})
	}
	return out
}

// LoadCacheData takes what surveys of an earlier run found out.
func (r *Repository) LoadCacheData(decode func(into any) error) error {
	var cached cacheData
	if err := decode(&cached); err != nil {
		return err
	}
	if err := r.last.LoadCacheData(cached.Configuration); err != nil {
		return err
	}
	r.survey.reader.LoadCacheData(cached.Specs, cached.Records)
	for _, p := range cached.Made {
		r.made[p.Branch] = made{plumbing.NewHash(p.Tip), p.On}
	}
	return nil
}
