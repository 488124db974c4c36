package index

import (
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// recordable is what a file holds, without the objects of one at a path that no record can name. A record says where a
// spec is, and the bot writes nothing that it could not read again.
func recordable(path string, d decoded) decoded {
	if v1alpha1.MayBeRecorded(path) || !slices.ContainsFunc(d.documents, func(doc v1alpha1.Document) bool {
		return !doc.Foreign()
	}) {
		return d
	}
	d.documents, d.problems = slices.Clone(d.documents), slices.Clip(d.problems)
	problem := v1alpha1.Problem{Severity: v1alpha1.Error, File: path,
		Message: "the file's path has a control character, a backslash, or a byte that is not UTF-8, which no record " +
			"can name: rename the file"}
	for i := range d.documents {
		doc := &d.documents[i]
		if doc.Object != nil {
			at := problem
			at.Line = doc.Line
			doc.Object, doc.Problems = nil, append(slices.Clip(doc.Problems), at)
		}
	}
	d.problems = append(d.problems, problem)
	return d
}
