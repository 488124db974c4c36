package compose

import (
	"slices"

	"github.com/rampart-gitops/rampart/internal/cores"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// Part is what one decision adds to an environment's commit.
type Part struct {
	*rollout.Decision
	// Files that change; none: nothing of the worker deployment is committed.
	Files []rollout.FileChange
	// Refused says why nothing of the decision is carried out although it was made; "" if it is.
	Refused string
	// Curtailed says why only the traffic that was taken back is written down; "" if all of the decision is.
	Curtailed string
}

// Render renders one decision, and checks it once more against what must never happen.
func Render(d *rollout.Decision) Part {
	part := Part{Decision: d}
	if never := plan.Never(d.Snapshot, d.Plan); len(never) > 0 {
		part.Refused = "the plan was refused: " + never[0]
		return part
	}
	files, err := render.Files(d.Plan, d.Snapshot.Record)
	if err != nil {
		return curtailed(part, err)
	}
	part.Files = files
	return part
}

// curtailed is a part whose files cannot be written. Where traffic was taken back, that much is written down all the
// same.
func curtailed(part Part, why error) Part {
	d := *part.Decision
	if d.Plan.Lower != nil {
		d.Plan.Record, d.Plan.Versions, d.Plan.Status, d.Plan.Spec = render.LoweringRecord(d.Plan, d.Snapshot.Record),
			nil, nil, nil
		d.Plan.Raise, d.Plan.Gates, d.Plan.Batches, d.Plan.Remove = nil, nil, nil, false
		if files, err := render.Files(d.Plan, d.Snapshot.Record); err == nil && len(files) > 0 {
			return Part{Decision: &d, Files: files,
				Curtailed: "render: " + why.Error() + "; that traffic was taken back is written down"}
		}
	}
	part.Refused = "render: " + why.Error()
	return part
}

// Files renders all decisions of an environment, and its own kustomization.yaml: root is nil if that stays as it is.
func Files(env rollout.EnvironmentWorld, decisions []*rollout.Decision) (
	parts []Part, root *rollout.FileChange, err error) {
	parts = RenderEach(decisions)
	root, err = rootOf(env, parts)
	return parts, root, err
}

// RenderEach renders decisions, in their order, on all cores.
func RenderEach(decisions []*rollout.Decision) []Part {
	parts := make([]Part, len(decisions))
	cores.Each(len(parts), func(i int) { parts[i] = Render(decisions[i]) })
	return parts
}

// DecisionsOf are the decisions of parts, in their order.
func DecisionsOf(parts []Part) []*rollout.Decision {
	out := make([]*rollout.Decision, len(parts))
	for i, part := range parts {
		out[i] = part.Decision
	}
	return out
}

// rootOf is the environment's kustomization.yaml with what is rendered; nil if it stays as it is, as always where the
// environment cannot be used.
func rootOf(env rollout.EnvironmentWorld, parts []Part) (*rollout.FileChange, error) {
	if env.Unusable != nil {
		return nil, nil
	}
	dirs := slices.Clone(env.Roots)
	for _, part := range parts {
		switch name := part.Plan.Deployment.String(); {
		case part.Refused != "" || part.Plan.Record == nil:
		case part.Plan.Remove:
			dirs = slices.DeleteFunc(dirs, func(dir string) bool { return dir == name })
		default:
			dirs = append(dirs, name)
		}
	}
	if len(dirs) == 0 && len(env.Roots) == 0 {
		return nil, nil
	}
	file, err := render.Root(env.Environment, dirs)
	if err != nil || file.Data == env.RootFile.Data {
		return nil, err
	}
	return &file, nil
}

// roots is a kustomization.yaml that was found to list just these folders.
type roots struct {
	file string // its hash
	dirs []string
}

// RootFiles are the outputs' own kustomization.yaml files that were found to be right, by environment.
type RootFiles map[string]roots

// Change is the environment's kustomization.yaml with what is rendered; nil if it stays as it is. One that is known to
// be as it should be is not rendered again.
func (f *RootFiles) Change(env rollout.EnvironmentWorld, parts []Part) (*rollout.FileChange, error) {
	if env.Unusable != nil {
		return nil, nil
	}
	same := !slices.ContainsFunc(parts, func(p Part) bool {
		return p.Refused == "" && p.Plan.Record != nil && (p.Plan.Remove || p.Snapshot.Record.Tree == "")
	})
	name := env.Environment.Name
	if was, ok := (*f)[name]; ok && same && was.file == env.RootFile.Hash && slices.Equal(was.dirs, env.Roots) {
		return nil, nil
	}
	root, err := rootOf(env, parts)
	if *f == nil {
		*f = RootFiles{}
	}
	if delete(*f, name); err == nil && root == nil && same {
		(*f)[name] = roots{env.RootFile.Hash, env.Roots}
	}
	return root, err
}
