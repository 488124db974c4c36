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
func Definitions() [][]byte { return Read(files) }

// Read gives the YAML files of an embedded folder, sorted by name.
func Read(from embed.FS) [][]byte {
	names, err := fs.Glob(from, "*.yaml")
	if err != nil {
		panic(fmt.Sprintf("the embedded definitions cannot be listed: %v", err))
	}
	out := make([][]byte, len(names))
	for i, name := range names {
		if out[i], err = from.ReadFile(name); err != nil {
			panic(fmt.Sprintf("the embedded definition %s cannot be read: %v", name, err))
		}
	}
	return out
}

// All is every custom resource definition, as one stream of YAML documents, sorted by file name.
func All() []byte { return append([]byte(head), slices.Concat(Definitions()...)...) }
