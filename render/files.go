package render

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Files gives the changes that a plan makes to what is in Git, sorted by path. There is a change for each file whose
// content is not what the record has, and none for any other. Paths are from the repository's root and always below
// plan.Dir. A plan without a record writes nothing.
//
// The errors are those of a plan that does not fit its record (a write for a version that is not recorded, a build ID
// that cannot be a file name, a manifest to edit that is not there) and of manifests that someone made unreadable.
// They name the version; nothing is to be written then. So too with an *UnreadableError: a record or a status that
// the bot could not read again.
func Files(plan rollout.Plan, record rollout.Record) ([]rollout.FileChange, error) {
	if plan.Record == nil {
		return nil, nil
	}
	if !fs.ValidPath(plan.Dir) || plan.Dir == "." {
		return nil, fmt.Errorf("render %s: %q cannot be a folder for output", plan.Deployment, plan.Dir)
	}
	f := filer{
		plan: plan, record: record,
		versions: slices.Clone(plan.Record.Versions),
		changes:  map[string]rollout.FileChange{},
	}
	steps := []func() error{f.writeVersions, f.ignoreDraining, f.writeRouting, f.writeStatus, f.writeKustomization,
		f.readBack}
	if plan.Remove {
		steps = []func() error{f.removeRecord}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, fmt.Errorf("render %s: %w", plan.Deployment, err)
		}
	}
	out := make([]rollout.FileChange, 0, len(f.changes))
	for _, p := range slices.Sorted(maps.Keys(f.changes)) {
		out = append(out, f.changes[p])
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

// filer collects the changes of one worker deployment. Paths in it are below the worker deployment's folder.
type filer struct {
	plan     rollout.Plan
	record   rollout.Record
	versions []v1alpha1.RecordedVersion // the plan's, with the hashes of what is rendered
	changes  map[string]rollout.FileChange
}

// put writes a file, unless its content is what it was, and gives the hash of its blob.
func (f *filer) put(name, data string) string {
	hash := BlobHash(data)
	f.change(name, hash, rollout.FileChange{Data: data})
	return hash
}

func (f *filer) change(name, hash string, c rollout.FileChange) {
	if f.record.Files[name].Hash == hash {
		delete(f.changes, name)
		return
	}
	c.Path = path.Join(f.plan.Dir, name)
	f.changes[name] = c
}

func (f *filer) remove(name string) {
	if _, there := f.record.Files[name]; there {
		f.changes[name] = rollout.FileChange{Path: path.Join(f.plan.Dir, name), Delete: true}
	}
}

// exists reports whether a file is there when the changes so far are made.
func (f *filer) exists(name string) bool {
	if c, changed := f.changes[name]; changed {
		return !c.Delete
	}
	_, there := f.record.Files[name]
	return there
}

func (f *filer) writeVersions() error {
	for i, w := range f.plan.Versions {
		if slices.ContainsFunc(f.plan.Versions[:i], func(o rollout.VersionWrite) bool {
			return o.BuildID == w.BuildID
		}) {
			return fmt.Errorf("version %q: written twice", w.BuildID)
		}
		if err := f.writeVersion(w); err != nil {
			return fmt.Errorf("version %q: %w", w.BuildID, err)
		}
	}
	return nil
}

func (f *filer) writeVersion(w rollout.VersionWrite) error {
	if w.BuildID == "" || rollout.CleanBuildID(w.BuildID) != w.BuildID {
		return fmt.Errorf("build ID %q cannot be the name of a folder", w.BuildID)
	}
	if w.Op == rollout.RemoveVersion {
		f.removeVersion(w.BuildID)
		return nil
	}
	v := rollout.FindVersion(f.versions, w.BuildID)
	if v == nil {
		return fmt.Errorf("%s: not in the record", w.Op)
	}
	hashes, err := f.versionFiles(w, *v)
	if err != nil {
		return fmt.Errorf("%s: %w", w.Op, err)
	}
	if err := f.writeResources(w, v.Deployment, hashes); err != nil {
		return fmt.Errorf("%s: %w", w.Op, err)
	}
	v.Files = hashes
	return nil
}

// versionFiles writes a version's files and gives the hashes of all it has then, by name below its folder.
func (f *filer) versionFiles(w rollout.VersionWrite, v v1alpha1.RecordedVersion) (map[string]string, error) {
	switch w.Op {
	case rollout.RenderVersion:
		return f.renderVersion(w, v)
	case rollout.EditVersion, rollout.ReconnectVersion:
		return f.editVersion(w, v)
	case rollout.WriteResources:
		return cloneHashes(v.Files), nil
	case rollout.RestoreFiles:
		return f.restoreVersion(w, v)
	case rollout.TakeOverVersion:
		return f.takeOverVersion(w)
	}
	return nil, fmt.Errorf("write version %s: expected the operation %s, %s, %s, %s, %s or %s, got %q", w.BuildID,
		rollout.RenderVersion, rollout.EditVersion, rollout.ReconnectVersion, rollout.WriteResources,
		rollout.RestoreFiles, rollout.TakeOverVersion, w.Op)
}

// editVersion changes the manifests of a version's Deployments: the first one's and those of its pools.
func (f *filer) editVersion(w rollout.VersionWrite, v v1alpha1.RecordedVersion) (map[string]string, error) {
	var rewire *wiring
	if w.Op == rollout.ReconnectVersion {
		wiring, err := f.wiring(w.BuildID)
		if err != nil {
			return nil, err
		}
		rewire = &wiring
	}
	edits := map[string]edit{layout.Deployment: {w.Replicas, w.Guard, rewire}}
	for _, p := range w.Pools {
		edits[rollout.PoolFile(p.Name)] = edit{p.Replicas, w.Guard, rewire}
	}
	hashes := cloneHashes(v.Files)
	for _, name := range slices.Sorted(maps.Keys(edits)) {
		file := layout.VersionFile(w.BuildID, name)
		old, there := f.record.Files[file]
		if !there {
			return nil, fmt.Errorf("%s is not in the record", file)
		}
		if old.Data == "" {
			return nil, fmt.Errorf("%s is empty, or too large to be read", file)
		}
		data, err := editManifest(old.Data, edits[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		hashes[name] = f.put(file, data)
	}
	return hashes, nil
}

// renderVersion renders a version anew. What it had before and has no longer goes, but for the objects of its
// templates.
func (f *filer) renderVersion(w rollout.VersionWrite, v v1alpha1.RecordedVersion) (map[string]string, error) {
	if f.plan.Spec == nil {
		return nil, fmt.Errorf("the plan has no spec")
	}
	wiring, err := f.wiring(w.BuildID)
	if err != nil {
		return nil, err
	}
	rendered, err := version{
		name: f.plan.Deployment, buildID: w.BuildID, deployment: v.Deployment,
		spec: f.plan.Spec.Spec, wiring: wiring, replicas: w.Replicas, guard: w.Guard, pools: w.Pools,
	}.files()
	if err != nil {
		return nil, err
	}
	dir := layout.Version(w.BuildID) + "/"
	hashes := make(map[string]string, len(rendered))
	for name, data := range rendered {
		hashes[name] = f.put(dir+name, data)
	}
	for _, x := range v.Resources {
		if hash, there := v.Files[rollout.ResourceFile(x.Template)]; there {
			hashes[rollout.ResourceFile(x.Template)] = hash
		}
	}
	for name := range f.recordedFiles(w.BuildID) {
		if _, still := hashes[name]; !still {
			f.remove(dir + name)
		}
	}
	return hashes, nil
}

// takeOverVersion writes the manifest of a Deployment that was made by others.
func (f *filer) takeOverVersion(w rollout.VersionWrite) (map[string]string, error) {
	raw, err := v1alpha1.DecodeJSON(w.Manifest)
	if err != nil {
		return nil, err
	}
	d, ok := raw.(map[string]any)
	if !ok {
		return nil, errors.New("the manifest is not an object")
	}
	if err := applyEdit(d, edit{replicas: w.Replicas, guard: w.Guard}); err != nil {
		return nil, err
	}
	data, err := manifestText(d)
	if err != nil {
		return nil, err
	}
	return map[string]string{layout.Deployment: f.put(layout.VersionFile(w.BuildID, layout.Deployment), data)}, nil
}

func (f *filer) restoreVersion(w rollout.VersionWrite, v v1alpha1.RecordedVersion) (map[string]string, error) {
	hashes := cloneHashes(v.Files)
	for _, name := range slices.Sorted(maps.Keys(w.Blobs)) {
		blob := w.Blobs[name]
		if !fs.ValidPath(name) || name == "." {
			return nil, fmt.Errorf("restore file: expected a path below the version's folder, such as "+
				"deployment.yaml, got %q", name)
		}
		if !isBlobHash(blob) {
			return nil, fmt.Errorf("restore %s: expected a blob hash of %d hex digits, got %q", name, 2*sha1.Size, blob)
		}
		f.change(layout.VersionFile(w.BuildID, name), blob, rollout.FileChange{Blob: blob})
		hashes[name] = blob
	}
	return hashes, nil
}

// removeVersion removes the files that were recorded for a version. A file that someone else put beside them stays.
func (f *filer) removeVersion(buildID string) {
	f.remove(layout.VersionFile(buildID, layout.Deployment))
	for name := range f.recordedFiles(buildID) {
		f.remove(layout.VersionFile(buildID, name))
	}
}

// removeRecord removes the folder of a worker deployment that was retired. One that still has workers stays.
func (f *filer) removeRecord() error {
	for name := range f.record.Files {
		if strings.HasPrefix(name, layout.Versions+"/") {
			return fmt.Errorf("remove the record: %s is still there", name)
		}
		f.remove(name)
	}
	return nil
}

// recordedFiles are the files of a version as they were recorded before this plan.
func (f *filer) recordedFiles(buildID string) map[string]string {
	if v := rollout.FindVersion(f.record.Versions(), buildID); v != nil {
		return v.Files
	}
	return nil
}

func (f *filer) wiring(buildID string) (wiring, error) {
	if f.plan.Connection == nil {
		return wiring{}, fmt.Errorf("the plan has no connection")
	}
	return wiring{
		connection: f.plan.Connection.Spec,
		namespace:  f.plan.Record.TemporalNamespace,
		deployment: f.plan.Deployment.String(),
		buildID:    buildID,
		names:      f.plan.Environment.WorkerEnv,
	}, nil
}

// writeRouting writes routing.yaml, unless it holds the same record, as it was sealed, already.
func (f *filer) writeRouting() error {
	spec := *f.plan.Record
	spec.Versions = f.versions
	routing := v1alpha1.Routing{
		APIVersion: v1alpha1.RampartAPIVersion,
		Kind:       v1alpha1.KindRouting,
		Metadata: v1alpha1.ObjectMeta{
			Name: f.plan.Deployment.Name, Namespace: f.plan.Deployment.Namespace,
			Annotations: map[string]string{annotationLocalConfig: "true"},
		},
		Spec: spec,
	}
	old := f.record.Routing
	if old != nil {
		routing.KeepUnknown(old)
	}
	sealed := old != nil && f.exists(layout.Routing) && !old.Edited()
	// as it mostly is, which is seen sooner than that the digest is the same
	if sealed && reflect.DeepEqual(old.Spec, routing.Spec) {
		return nil
	}
	routing.Seal()
	const digest = v1alpha1.AnnotationRoutingDigest
	if sealed && old.Metadata.Annotations[digest] == routing.Metadata.Annotations[digest] {
		return nil
	}
	data, err := routingText(&routing)
	if err != nil {
		return fmt.Errorf("%s: %w", layout.Routing, err)
	}
	f.put(layout.Routing, data)
	return nil
}

// routingText is a routing.yaml.
func routingText(r *v1alpha1.Routing) (string, error) {
	object, err := r.Tree()
	if err != nil {
		return "", err
	}
	return yamlText(object)
}

// annotationLocalConfig keeps kustomize and kpt from applying an object.
const annotationLocalConfig = "config.kubernetes.io/local-config"

func cloneHashes(files map[string]string) map[string]string {
	if files == nil {
		return map[string]string{}
	}
	return maps.Clone(files)
}

// BlobHash is the name that Git gives to a file's content, in hex.
func BlobHash(data string) string {
	sum := sha1.Sum([]byte("blob " + strconv.Itoa(len(data)) + "\x00" + data))
	return hex.EncodeToString(sum[:])
}

func isBlobHash(s string) bool {
	return len(s) == 2*sha1.Size && strings.Trim(s, "0123456789abcdef") == ""
}
