package reconcile

import (
	"slices"

	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// Part is what one decision adds to an environment's commit.
type Part struct {
	Decision
	// Files that change; none: nothing of the worker deployment is committed.
	Files []rollout.FileChange
	// Refused says why nothing of the decision is carried out although it was made; "" if it is.
	Refused string
}

// Render renders one decision, and checks it once more against what must never happen.
func Render(d Decision) Part {
	part := Part{Decision: d}
	if never := plan.Never(d.Snapshot, d.Plan); len(never) > 0 {
		part.Refused = "the plan was refused: " + never[0]
		return part
	}
	files, err := render.Files(d.Plan, d.Snapshot.Record)
	if err != nil {
		part.Refused = "render: " + err.Error()
		return part
	}
	part.Files = files
	return part
}

// Compose renders all decisions of an environment, and its own kustomization.yaml: root is nil if that stays as it is.
func Compose(env rollout.EnvironmentWorld, decisions []Decision) (parts []Part, root *rollout.FileChange, err error) {
	dirs := slices.Clone(env.Roots)
	parts = make([]Part, len(decisions))
	onAllCores(len(parts), func(i int) { parts[i] = Render(decisions[i]) })
	for i, d := range decisions {
		part := parts[i]
		switch name := d.Plan.Deployment.String(); {
		case part.Refused != "" || d.Plan.Record == nil:
		case d.Plan.Remove:
			dirs = slices.DeleteFunc(dirs, func(dir string) bool { return dir == name })
		default:
			dirs = append(dirs, name)
		}
	}
	if len(dirs) == 0 && len(env.Roots) == 0 {
		return parts, nil, nil
	}
	file, err := render.Root(env.Environment, dirs)
	if err != nil || file.Data == env.RootFile.Data {
		return parts, nil, err
	}
	return parts, &file, nil
}
