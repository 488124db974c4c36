package source

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/util"
	"sigs.k8s.io/kustomize/api/konfig"
)

// Kind is what builds a folder.
type Kind string

// The kinds.
const (
	Kustomize Kind = "Kustomize"
	Helm      Kind = "Helm"
)

// Bounds of what a build is given and gives.
const (
	maxFiles  = 2000
	maxInput  = 8 << 20
	maxOutput = 1 << 20
)

// KindOf is what builds the folder that a file of this name is in; "": nothing.
func KindOf(name string) Kind {
	switch base := path.Base(name); {
	case base == util.ChartfileName:
		return Helm
	case slices.Contains(konfig.RecognizedKustomizationFileNames(), base):
		return Kustomize
	}
	return ""
}

// Folder is a folder to be built.
type Folder struct {
	Kind Kind
	// Marker is the path of the file that makes it one, from the repository's root: its kustomization.yaml or
	// Chart.yaml.
	Marker string
	// Values are files over the chart's own values.yaml, in this order: paths from the chart's folder, or, after a
	// slash, from the root.
	Values []string
	// Namespace that the chart is rendered for.
	Namespace string
}

// Dir is the folder's path.
func (f Folder) Dir() string { return path.Dir(f.Marker) }

// File is one file that a build may look at.
type File struct {
	Path string
	// Blob is its Git hash; "" where that is not known.
	Blob string
	Data []byte
}

// At is what is at a path: the Git hash of a file or a folder; "" for nothing.
type At struct{ Path, Hash string }

// Input is all that a build may look at.
type Input struct {
	Folder
	// Files sorted by path.
	Files []File
}

// Output is what a build gives.
type Output struct {
	// Parts of the YAML, in the order of the objects.
	Parts []Part
	// Used are the paths of the files that it is made of, sorted.
	Used []string
}

// Part is some of the YAML that a build gives.
type Part struct {
	// File that it is made of: a template of a chart, or the kustomization.
	File string
	Text []byte
}

// Error says why a folder cannot be built.
type Error struct {
	// File and Line are where; 0: the file as a whole.
	File string
	Line int
	// Field of the file; "" where that is not known.
	Field   string
	Message string
	// Bounds says that it took more time or memory than it may: another time it may do with less.
	Bounds bool
}

// Error gives file:line: field: message.
func (e *Error) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", at, e.Line)
	}
	if e.Field != "" {
		at += ": " + e.Field
	}
	return at + ": " + e.Message
}

// Build builds a folder. What it is given may never end: a Process runs it within bounds. Errors: *Error.
func Build(in Input) (Output, error) {
	build := kustomize
	if in.Kind == Helm {
		build = helm
	}
	out, err := build(in)
	if err != nil {
		return Output{}, err
	}
	size := 0
	for _, p := range out.Parts {
		size += len(p.Text)
	}
	if size > maxOutput {
		return Output{}, &Error{File: in.Marker, Message: fmt.Sprintf("builds %d bytes of objects, and at most %d "+
			"are read: build fewer objects, or split the folder", size, maxOutput)}
	}
	return out, nil
}

// below is a path from a folder; false: it is not in it.
func below(dir, file string) (string, bool) {
	if dir == "." {
		return file, true
	}
	return strings.CutPrefix(file, dir+"/")
}
