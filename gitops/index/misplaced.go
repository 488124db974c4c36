package index

import (
	"fmt"
	"path"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
)

// misplaced reports objects that a person put into an output, where the bot does not look for them. They are in a file
// that is not the bot's own.
func (e *environment) misplaced(file, hash string) error {
	if ext := path.Ext(file); ext != ".yaml" && ext != ".yml" && ext != ".json" ||
		slices.Contains(layout.OfRecord(), path.Base(file)) {
		return nil
	}
	d, err := e.decodeAnew(e.out, &found{path: file, hash: hash})
	if err != nil {
		return err
	}
	for _, doc := range d.documents {
		switch doc.Object.(type) {
		case *v1alpha1.WorkerDeployment, *v1alpha1.Connection, *v1alpha1.Waiver, *v1alpha1.WorkerResourceTemplate:
			e.world.Problems = append(e.world.Problems,
				v1alpha1.Problem{Severity: v1alpha1.Error, File: file, Line: doc.Line, Message: fmt.Sprintf(
					"%s %s has no effect here: below %s is what the bot writes. Move the file to a folder beside it",
					doc.Kind, doc.Name, path.Clean(e.world.Environment.Output.Path))})
		}
	}
	return nil
}
