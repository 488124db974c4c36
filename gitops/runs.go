package gitops

import (
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// If few of many specs moved, a survey takes over the others from the last survey as they are, many at once: to
// look at each would cost more than all that follows.

// run are files in a row whose specs the last survey had in a row: n from files[file] and from specs[spec] on.
type run struct{ file, spec, n int }

// near is how far away the next spec in a row is looked for, past those whose files are gone or other ones.
const near = 16

// runs are the files that the last survey knew in brief, in their order. Where more is said of a spec than what its
// file says there are none.
func (e *environment) runs(files []*found, owners map[string]string) []run {
	last := e.surveyed[e.world.Environment.Name]
	if last == nil || last.parts == nil || owners != nil || e.options.restricted() || last.world.Environment.Namespace != e.world.Environment.Namespace {
		return nil
	}
	var out []run
	for i, k := 0, 0; i < len(files); {
		ahead := 0
		for ahead < near && k+ahead < len(last.specs) && last.specs[k+ahead].file != files[i] {
			ahead++
		}
		if ahead == near || k+ahead == len(last.specs) {
			i++
			continue
		}
		k += ahead
		n := 0
		for i+n < len(files) && k+n < len(last.specs) && last.specs[k+n].isAlone(files[i+n]) {
			n++
		}
		if n > 0 {
			out = append(out, run{i, k, n})
		}
		i, k = i+max(n, 1), k+max(n, 1)
	}
	return out
}

// isAlone reports whether all that is known of a spec is a brief of this file.
func (s *specAt) isAlone(f *found) bool { return s.file == f && s.brief != nil && s.spec == nil }

// between are the files that no run has.
func between(files []*found, runs []run) []*found {
	if len(runs) == 0 {
		return files
	}
	var out []*found
	at := 0
	for _, r := range runs {
		out = append(out, files[at:r.file]...)
		at = r.file + r.n
	}
	return append(out, files[at:]...)
}

// sort sorts the objects of all files.
func (e *environment) sort(files []*found, runs []run, owners map[string]string) error {
	e.specs = make([]*specAt, 0, len(files))
	at := 0
	for _, r := range append(runs, run{file: len(files)}) {
		for _, f := range files[at:r.file] {
			if f.path == layout.Config {
				continue
			}
			if err := e.file(f, owners); err != nil {
				return err
			}
		}
		if r.n > 0 {
			again := e.surveyed[e.world.Environment.Name].specs[r.spec:][:r.n]
			e.inOrder(again[0].name)
			e.specs = append(e.specs, again...)
		}
		at = r.file + r.n
	}
	return nil
}

// add adds a spec.
func (e *environment) add(s *specAt) {
	e.inOrder(s.name)
	e.specs = append(e.specs, s)
}

// inOrder notes whether a name comes where it has to be.
func (e *environment) inOrder(next rollout.Name) {
	if n := len(e.specs); n > 0 && e.specs[n-1].name.Compare(next) > 0 {
		e.disordered = true
	}
}
