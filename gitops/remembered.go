package gitops

import (
	"cmp"
	"maps"

	"github.com/go-git/go-git/v5/plumbing"
)

// remembered is what a Repository remembers of what it surveyed.
type remembered struct {
	Specs, Records []rememberedFile
	// Made are the branches of proposals that hold what the bot put there.
	Made []rememberedProposal
	// Configuration is the last one that could be used, as JSON: there, a list without elements is not the same as
	// none.
	Configuration string
}

type rememberedProposal struct{ Branch, Tip, On string }

// rememberedFile is a brief and what it is of.
type rememberedFile struct {
	Path, Hash string
	Spec       specBrief
	Record     recordBrief
}

// Remember gives what surveys found out, and what an earlier run did where there was none yet.
func (r *Repository) Remember() any {
	reader := &r.survey.reader
	specs, records := maps.Clone(reader.briefs.specs), maps.Clone(reader.briefs.records)
	if specs == nil {
		specs, records = map[fileKey]specBrief{}, map[fileKey]recordBrief{}
	}
	out := remembered{Configuration: r.last.rememberConfiguration()}
	for _, dir := range reader.dirs {
		for _, f := range dir.files {
			if f.brief != nil {
				specs[f.key()] = *f.brief
			}
		}
	}
	for _, in := range reader.folders {
		for _, at := range in.at {
			if at.at == nil {
				continue
			}
			if b := cmp.Or(at.at.brief, at.at.noted); b != nil {
				records[fileKey{at.dir, at.hash}] = *b
			}
		}
	}
	for k, v := range specs {
		out.Specs = append(out.Specs, rememberedFile{Path: k.path, Hash: k.hash, Spec: v})
	}
	for k, v := range records {
		out.Records = append(out.Records, rememberedFile{Path: k.path, Hash: k.hash, Record: v})
	}
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
	if err := r.last.recallConfiguration(known.Configuration); err != nil {
		return err
	}
	reader := &r.survey.reader
	b := reader.briefs
	b.specs, b.records = make(map[fileKey]specBrief, len(known.Specs)), make(map[fileKey]recordBrief, len(known.Records))
	for _, f := range known.Specs {
		b.specs[fileKey{f.Path, f.Hash}] = f.Spec
	}
	for _, f := range known.Records {
		b.records[fileKey{f.Path, f.Hash}] = f.Record
	}
	for _, p := range known.Made {
		r.made[p.Branch] = made{plumbing.NewHash(p.Tip), p.On}
	}
	return nil
}
