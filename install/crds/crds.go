// Package crds has the custom resource definitions of the objects that reach a cluster, made by controller-gen from the
// Go types of gitops/api/v1alpha1. They have no status subresource: what applies Git applies the status too. The chart
// install/chart-crds installs the same files; with the definitions Kubernetes would delete every object of theirs, so
// Helm keeps them when the chart goes.
//
// The annotation rampart.dev/release is the release that a definition is of, by which rampart crds --install never goes
// back to an earlier one.
package crds

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
)

//go:embed *.yaml
var files embed.FS

// Group is the API group of the objects.
const Group = "temporal.io"

// Release is the annotation of a definition that says which release it is of.
const Release = "rampart.dev/release"

// head stands before the definitions.
const head = `# Custom resource definitions of Rampart. They have the names of the in-cluster worker controller's, and no status
# subresource: where that controller runs, applying them would take the status of its objects away.
`

// Definitions are the custom resource definitions as YAML, sorted by file name.
func Definitions() [][]byte {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		panic(fmt.Sprintf("the embedded definitions cannot be listed: %v", err))
	}
	out := make([][]byte, len(names))
	for i, name := range names {
		if out[i], err = files.ReadFile(name); err != nil {
			panic(fmt.Sprintf("the embedded definition %s cannot be read: %v", name, err))
		}
	}
	return out
}

// All is every custom resource definition, as one stream of YAML documents, sorted by file name.
func All() []byte { return append([]byte(head), slices.Concat(Definitions()...)...) }
