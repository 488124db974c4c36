package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// References are the objects that the versions of a worker deployment name.
type References struct {
	Environment string `json:"environment"`
	Name        string `json:"name"`
	// Versions with files in Git, in the order of their creation.
	Versions []rollout.VersionReferences `json:"versions"`
}

// NewReferences lists what the versions of a worker deployment name.
func NewReferences(s rollout.Snapshot) References {
	out := References{Environment: s.Environment.Name, Name: s.Deployment.String(), Versions: s.References}
	if out.Versions == nil {
		out.Versions = []rollout.VersionReferences{}
	}
	return out
}

// WriteText prints a table with a row for each object of each version.
func (r References) WriteText(w io.Writer) error {
	rows := [][]string{{"VERSION", "STATE", "KIND", "NAME", "IN GIT"}}
	for _, v := range r.Versions {
		version, state := v.BuildID, referringState(v)
		if len(v.Objects) == 0 {
			rows = append(rows, []string{version, state, "-", "-", "-"})
		}
		for _, object := range v.Objects {
			name := object.Name
			if object.Optional {
				name += " (optional)"
			}
			rows = append(rows, []string{version, state, object.Kind, oneLine(name),
				dash(strings.Join(object.Files, ", "))})
		}
	}
	if _, err := io.WriteString(w, aligned(rows)); err != nil {
		return err
	}
	for _, v := range r.Versions {
		if v.Problem != "" {
			if _, err := fmt.Fprintf(w, "\n%s: %s: what it names is not known\n", v.BuildID,
				oneLine(v.Problem)); err != nil {
				return err
			}
		}
	}
	return nil
}

// referringState is the state of a version, and what it is needed for.
func referringState(v rollout.VersionReferences) string {
	needed := map[rollout.VersionStatus]string{rollout.StatusCurrent: " (traffic)", rollout.StatusRamping: " (traffic)",
		rollout.StatusDraining: " (open workflows)"}
	out := string(v.State) + needed[v.State]
	if v.ScaledDown {
		out += ", scaled down"
	}
	return out
}
