package reconcile

import (
	"context"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// withManifests has manifests read that surveys leave out, as far as what follows a plan needs them. With an error,
// dropped are the decisions that cannot be rendered for want of what could not be read; it is decided for them again in
// the next cycle.
func withManifests(ctx context.Context, of reading,
	decisions []*rollout.Decision) (out, dropped []*rollout.Decision, err error) {
	var wanting []rollout.Snapshot
	for _, d := range decisions {
		if names := wanted(d); len(names) > 0 {
			s := d.Snapshot
			s.LoadFiles = names
			wanting = append(wanting, s)
		}
	}
	if len(wanting) == 0 {
		return decisions, nil, nil
	}
	loaded, err := of.load(ctx, wanting)
	out = make([]*rollout.Decision, 0, len(decisions))
	for _, d := range decisions {
		if len(wanting) > 0 && wanting[0].Deployment == d.Snapshot.Deployment {
			wanting = wanting[1:]
			if len(loaded) > 0 && loaded[0].Deployment == d.Snapshot.Deployment {
				full := *d
				full.Snapshot, loaded = loaded[0], loaded[1:]
				full.Snapshot.LoadFiles = nil
				d = &full
			} else if edits(d) {
				dropped = append(dropped, d)
				continue
			}
		}
		out = append(out, d)
	}
	return out, dropped, err
}

// wanted are the files to load; the snapshot has only their hashes. They are the files of versions whose manifests a
// plan edits. Where people are asked, they are all such files, since people are shown how the rollout would go on.
func wanted(d *rollout.Decision) []string {
	asked := d.Plan.Review != nil && (d.Plan.Review.Held.Action.Kind == rollout.Ramp ||
		d.Plan.Review.Held.Action.Kind == rollout.Promote)
	edited := render.HealthChanges(d.Plan, d.Snapshot.Record)
	for _, w := range d.Plan.Versions {
		if isEdit(w) {
			edited = append(edited, w.BuildID)
		}
	}
	if !asked && len(edited) == 0 {
		return nil
	}
	var out []string
	for name, f := range d.Snapshot.Record.Files {
		if f.Data == "" && f.Hash != "" && (asked || slices.ContainsFunc(edited, func(buildID string) bool {
			return strings.HasPrefix(name, layout.VersionFile(buildID, ""))
		})) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// edits reports whether a plan changes manifests as they are, instead of rendering them anew.
func edits(d *rollout.Decision) bool { return slices.ContainsFunc(d.Plan.Versions, isEdit) }

func isEdit(w rollout.VersionWrite) bool {
	return w.Op == rollout.EditVersion || w.Op == rollout.ReconnectVersion
}
