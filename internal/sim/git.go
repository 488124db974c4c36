package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// commit gives the record after a commit. Nothing of the one before is changed.
func commit(record rollout.Record, changes []rollout.FileChange) (rollout.Record, error) {
	next := rollout.Record{Dir: record.Dir, Files: maps.Clone(record.Files)}
	if next.Files == nil {
		next.Files = map[string]rollout.File{}
	}
	for _, c := range changes {
		name := strings.TrimPrefix(c.Path, record.Dir+"/")
		switch {
		case c.Delete:
			delete(next.Files, name)
		case c.Blob != "":
			// There is no history here to take the content from. It matters only when the file is edited later on.
			next.Files[name] = rollout.File{Hash: c.Blob, Data: next.Files[name].Data}
		default:
			next.Files[name] = rollout.File{Hash: render.BlobHash(c.Data), Data: c.Data}
		}
	}
	for _, name := range []string{layout.Routing, layout.Status} {
		file := path.Join(record.Dir, name)
		documents, problems := v1alpha1.Decode(file, []byte(next.Files[name].Data))
		if v1alpha1.HasErrors(problems) {
			return record, fmt.Errorf("read what was committed: %w", problems[0])
		}
		for _, d := range documents {
			switch o := d.Object.(type) {
			case *v1alpha1.Routing:
				next.Routing = o
			case *v1alpha1.WorkerDeployment:
				next.Status = o
			}
		}
	}
	return next, nil
}

func withImage(spec *v1alpha1.WorkerDeployment, image string) (*v1alpha1.WorkerDeployment, error) {
	template, err := v1alpha1.DecodeJSON(spec.Spec.Template.Raw)
	if err != nil {
		return nil, fmt.Errorf("read the pod template: %w", err)
	}
	fields, _ := template.(map[string]any)
	pod, _ := fields["spec"].(map[string]any)
	containers, _ := pod["containers"].([]any)
	if len(containers) == 0 {
		return nil, fmt.Errorf("push %s: the pod template has no container", image)
	}
	first, ok := containers[0].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("push %s: the pod template has no first container", image)
	}
	first["image"] = image
	raw, err := json.Marshal(template)
	if err == nil {
		raw, err = v1alpha1.CanonicalJSON(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("write the pod template: %w", err)
	}
	next := *spec
	next.Spec.Template = v1alpha1.PodTemplate{Raw: raw, FirstImage: image}
	return &next, nil
}

// nextImage makes up the image after one: another tag, and another digest where there is one, so that the same policies
// fit it.
func nextImage(image string) string {
	name, digest, pinned := strings.Cut(image, "@")
	if at := strings.LastIndexByte(name, ':'); at > strings.LastIndexByte(name, '/') {
		name += "-next"
	} else if !pinned {
		name += ":next"
	}
	if !pinned {
		return name
	}
	sum := sha256.Sum256([]byte(digest))
	return name + "@sha256:" + hex.EncodeToString(sum[:])
}
