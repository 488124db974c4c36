package index

import (
	"context"
	"path"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// within is an environment as it was read, for another caller.
func (e *environment) within(ctx context.Context) environment {
	out := *e
	out.tree, out.out = tree.Within(ctx, e.tree), tree.Within(ctx, e.out)
	return out
}

// within is a survey for another caller.
func (v Surveyed) within(ctx context.Context) Surveyed {
	out := make(Surveyed, len(v))
	for name, e := range v {
		own := e.within(ctx)
		out[name] = &own
	}
	return out
}

// bring brings what reading the environment needs and is still on a server: specs and records that nothing is known of,
// policies and data. The code that needs a file reports that it cannot be read.
func (e *environment) bring(specs []*found) error {
	if !tree.IsPartial(e.tree) {
		return nil
	}
	files := e.undecoded(specs)
	left := tree.NewBudget()
	for _, folder := range e.found {
		for i := range folder.at {
			if in := &folder.at[i]; in.at == nil && e.index.record(in) == nil {
				files = e.filesBelow(fileKey{in.dir, in.hash}, ".", left, files)
			}
		}
	}
	if e.rootFile != nil {
		files = append(files, e.rootFile)
	}
	for _, globs := range [][]string{e.world.Environment.Policies, e.world.Environment.Data} {
		fit, err := e.match(e.tree, globs, nil, false)
		if err != nil {
			return err
		}
		files = append(files, fit.files...)
	}
	return tree.Bring(e.tree, hashesOf(files))
}

// undecoded are those of some files that nothing is known of yet.
func (r *Reader) undecoded(files []*found) []*found {
	var out []*found
	for _, f := range files {
		if r.index.spec(f) != nil {
			continue
		}
		if _, known := r.files[f.key()]; !known && f.built == nil {
			out = append(out, f)
		}
	}
	return out
}

// filesBelow adds the files of a record that reading it looks into. It leaves out what cannot be listed, or is too
// much: the reading of the record reports that.
func (e *environment) filesBelow(dir fileKey, below string, left *tree.Budget, out []*found) []*found {
	folder := path.Join(dir.path, below)
	entries, err := e.out.List(folder, dir.hash)
	if err != nil || left.Folder(folder, entries) != nil {
		return out
	}
	for _, x := range entries {
		name := tree.Join(below, x.Name)
		switch x.Kind {
		case tree.IsFile:
			if e.looksInto(name, x.Hash) {
				out = append(out, &found{path: tree.Join(dir.path, name), hash: x.Hash})
			}
		case tree.IsFolder:
			if e.index == nil {
				out = e.filesBelow(fileKey{dir.path, x.Hash}, name, left, out)
			}
		}
	}
	return out
}

// looksInto says whether a file of a record is read. Of what the bot wrote for the cluster a survey has to know no more
// than whether it is what it was.
func (e *environment) looksInto(name, hash string) bool {
	return e.index == nil || hash == "" || name == layout.Routing || name == layout.Status
}

// bring makes sure that Load can read what it needs for some snapshots.
func (v Surveyed) bring(ctx context.Context, snapshots []rollout.Snapshot) error {
	var files []*found
	var from tree.Tree
	left := tree.NewBudget()
	v = v.within(ctx)
	for i := range snapshots {
		s := &snapshots[i]
		e := v[s.Environment.Name]
		if !s.Partial && len(s.LoadFiles) == 0 || e == nil {
			continue
		}
		if !tree.IsPartial(e.tree) {
			return nil
		}
		from = e.tree
		if s.Partial {
			files = e.filesOf(e.specsOf(s.Deployment), fileKey{s.Record.Dir, s.Record.Tree}, left, files)
			continue
		}
		for _, name := range s.LoadFiles {
			files = append(files, &found{path: path.Join(s.Record.Dir, name), hash: s.Record.Files[name].Hash})
		}
	}
	if len(files) == 0 {
		return nil
	}
	return tree.Bring(from, hashesOf(files))
}

// bringFor makes sure that some worker deployments can be opened.
func (e *environment) bringFor(all []deploymentAt, which []int) error {
	if !tree.IsPartial(e.tree) {
		return nil
	}
	records := make([]fileKey, len(which))
	for k, i := range which {
		if r := all[i].record; r != nil && r.partial {
			records[k] = fileKey{r.Dir, r.Tree}
		}
	}
	var files []*found
	left := tree.NewBudget()
	for k, i := range which {
		files = e.filesOf(all[i].specs, records[k], left, files)
	}
	return tree.Bring(e.tree, hashesOf(files))
}

// filesOf adds the files of a worker deployment: its specs, and its record if it has one.
func (e *environment) filesOf(specs []*specAt, record fileKey, left *tree.Budget, out []*found) []*found {
	for i := range specs {
		out = append(out, specs[i].file)
	}
	if record.hash != "" {
		out = e.filesBelow(record, ".", left, out)
	}
	return out
}

// Blobs are those of all specs and records.
func (v Surveyed) Blobs(ctx context.Context) []git.Hash {
	var files []*found
	for _, e := range v.within(ctx) {
		for i := range e.specs {
			files = append(files, e.specs[i].file)
		}
		left := tree.NewBudget()
		for _, folder := range e.found {
			for i := range folder.at {
				files = e.filesBelow(fileKey{folder.at[i].dir, folder.at[i].hash}, ".", left, files)
			}
		}
	}
	return hashesOf(files)
}

func hashesOf(files []*found) []git.Hash {
	out := make([]git.Hash, 0, len(files))
	for _, f := range files {
		if f.built == nil { // else Git has no such object
			out = append(out, plumbing.NewHash(f.hash))
		}
	}
	return out
}
