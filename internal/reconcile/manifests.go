package reconcile

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// withManifests has what surveys leave out read, as far as what follows a plan needs it. With an error, decisions that need what could not be read
// are left out.
func withManifests(ctx context.Context, of reading, decisions []Decision) ([]Decision, error) {
	var wanting []rollout.Snapshot
	for i := range decisions {
		s := decisions[i].Snapshot
		if s.Wanted = wanted(&decisions[i]); len(s.Wanted) > 0 {
			wanting = append(wanting, s)
		}
	}
	if len(wanting) == 0 {
		return decisions, nil
	}
	filled, err := of.fill(ctx, wanting)
	out := make([]Decision, 0, len(decisions))
	for _, d := range decisions {
		if len(wanting) == 0 || wanting[0].Deployment != d.Snapshot.Deployment {
			out = append(out, d)
			continue
		}
		if wanting = wanting[1:]; len(filled) > 0 && filled[0].Deployment == d.Snapshot.Deployment {
			d.Snapshot, filled = filled[0], filled[1:]
			out = append(out, d)
		}
	}
	return out, err
}

// wanted are the files of which only the hash is known: of versions that a plan writes, or all where the record goes or people are asked,
// who are shown how the rollout would go on.
func wanted(d *Decision) []string {
	all := d.Plan.Remove || d.Plan.Review != nil
	if len(d.Plan.Versions) == 0 && !all {
		return nil
	}
	var out []string
	for name, f := range d.Snapshot.Record.Files {
		if f.Data == "" && f.Hash != "" && (all || slices.ContainsFunc(d.Plan.Versions, func(w rollout.VersionWrite) bool {
			return strings.HasPrefix(name, path.Join("versions", w.BuildID)+"/")
		})) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
