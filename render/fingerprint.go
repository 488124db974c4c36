package render

import (
	"encoding/json"
	"path"
	"regexp"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
)

// Fingerprint is what a file says that is worth another commit while one waits for its merge. That is all of it, but
// for a status.yaml what makes its status a new one, and for a routing.yaml all but the bot's own times. Two files of
// the same name and fingerprint differ in when they were made.
func Fingerprint(file, data string) string {
	switch path.Base(file) {
	case layout.Routing:
		return timesAndSeal.ReplaceAllStringFunc(data, withoutClock)
	case layout.Status:
		docs, problems := v1alpha1.Decode(file, []byte(data))
		if len(docs) != 1 || len(problems) > 0 {
			return data
		}
		object, ok := docs[0].Object.(*v1alpha1.WorkerDeployment)
		if !ok {
			return data
		}
		meta := object.Metadata
		meta.Labels, meta.Annotations = ownKeys(meta.Labels), ownKeys(meta.Annotations)
		fingerprint, err := json.Marshal([]any{object.APIVersion, object.Kind, meta, object.Spec,
			TransitionKey(object.Status)})
		if err != nil {
			return data
		}
		return string(fingerprint)
	}
	return data
}

// timesAndSeal finds the times of a routing.yaml as this package writes them, and the seal that they are part of.
var timesAndSeal = regexp.MustCompile(`(\w+): "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"|` +
	regexp.QuoteMeta(v1alpha1.AnnotationRoutingDigest) + `: sha256:[0-9a-f]+`)

// withoutClock leaves of what timesAndSeal finds the times of Temporal: where these changed, traffic was moved.
func withoutClock(found string) string {
	if key, _, _ := strings.Cut(found, ":"); strings.HasSuffix(key, "ChangedAt") {
		return found
	}
	return ""
}
