package crds

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// Group is the API group of the objects.
const Group = "temporal.io"

// head stands before the definitions.
const head = `# Custom resource definitions of Rampart. They have the names of the in-cluster worker controller's, and no status subresource: where that
# controller runs, applying them would take the status of its objects away.
`

// Files are the definitions, one in each YAML file.
func Files() fs.FS { return files }

// All is every custom resource definition, as one stream of YAML documents, sorted by file name.
func All() []byte {
	out := []byte(head)
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("the embedded definitions cannot be listed: %v", err))
	}
	for _, e := range entries {
		data, err := files.ReadFile(e.Name())
		if err != nil {
			panic(fmt.Sprintf("the embedded definition %s cannot be read: %v", e.Name(), err))
		}
		out = append(out, data...)
	}
	return out
}
