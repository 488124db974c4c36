package gitops

import (
	"cmp"
	"sync"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A run that goes on from what an earlier one knew, without a mirror, asks for the files of some worker deployments
// together with what it certainly needs: of those that the last cycle looked at, which are in motion most likely, and
// of those whose specs moved since. Else each step of its first cycle would find out by itself that they are not there,
// with requests of its own. To expect the wrong ones costs their files.

// lookedAt is a worker deployment of an environment that a cycle looked at.
type lookedAt struct {
	Environment string
	Name        rollout.Name
}

// looks are the worker deployments that the last cycle looked at. If they were many, they are not used.
type looks struct {
	mu   sync.Mutex
	at   map[lookedAt]bool
	anew bool // what is noted next is another cycle's
}

// begin begins a cycle. One that looks at nothing, since it cannot read, changes nothing.
func (l *looks) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.anew = true
}

func (l *looks) note(snapshots []rollout.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.anew || l.at == nil {
		l.at, l.anew = map[lookedAt]bool{}, false
	}
	for i := range snapshots {
		if len(l.at) > manyFull {
			return
		}
		l.at[lookedAt{snapshots[i].Environment.Name, snapshots[i].Deployment}] = true
	}
}

// few are those that were looked at, if they are few.
func (l *looks) few() []lookedAt {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.at) > manyFull {
		return nil
	}
	out := make([]lookedAt, 0, len(l.at))
	for at := range l.at {
		out = append(out, at)
	}
	return out
}

// expect gives the specs and records of worker deployments that are most likely going to be looked at, all of them
// known in brief. moved are the specs that nothing is known about.
func (e *environment) expect(all, moved []*found) (specs []*found, records []fileKey) {
	t, ok := e.tree.(lazyTree)
	if !ok || !t.lazy() || e.expected == nil || e.briefs == nil || len(moved) > manyFull {
		return nil, nil
	}
	names := map[rollout.Name]bool{}
	for at := range e.expected {
		if at.Environment == e.world.Environment.Name {
			names[at.Name] = true
		}
	}
	paths := make(map[string]bool, len(moved))
	for _, f := range moved {
		paths[f.path] = true
	}
	for at, was := range e.briefs.specs {
		if was.Name != "" && paths[at.path] {
			names[e.nameOf(&was)] = true
		}
	}
	for _, f := range all {
		if f.brief != nil && f.brief.Name != "" && names[e.nameOf(f.brief)] {
			specs = append(specs, f)
		}
	}
	for _, folder := range e.found {
		for i := range folder.at {
			if in := &folder.at[i]; names[in.of] {
				records = append(records, fileKey{in.dir, in.hash})
			}
		}
	}
	return specs, records
}

// nameOf is the name of the worker deployment that a brief is of.
func (e *environment) nameOf(b *specBrief) rollout.Name {
	return rollout.Name{Namespace: cmp.Or(b.Namespace, e.world.Environment.Namespace), Name: b.Name}
}
