package index

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Locating picks the worker deployments for whose versions a reader says where the repository holds what they name.
// compared says that a change is read on top of its base, so that what the change removes is found, too.
type Locating func(env rollout.EnvironmentWorld, of rollout.Name, compared bool) bool

// LocateReferences fills in Snapshot.References of the worker deployments that are picked. It reads every YAML and
// JSON file of the specs' tree, once for each environment that has one.
func LocateReferences(pick Locating) Option { return func(o *options) { o.locate = pick } }

// objectName is a kind and a name of an object.
type objectName struct{ kind, name string }

// located are the objects that are looked for, each in some namespaces, by the files that hold them there.
type located map[objectName]map[string][]string

func (l located) want(namespace string, r rollout.Reference) {
	at := objectName{r.Kind, r.Name}
	if l[at] == nil {
		l[at] = map[string][]string{}
	}
	l[at][namespace] = nil
}

// add adds a file that holds an object. One without a namespace may be applied to any.
func (l located) add(object heldObject, file string) {
	for namespace, files := range l[object.objectName] {
		if object.namespace == "" || object.namespace == namespace {
			l[object.objectName][namespace] = append(files, file)
		}
	}
}

func (l located) files(namespace string, r rollout.Reference) []string {
	return l[objectName{r.Kind, r.Name}][namespace]
}

// heldObject is an object in a file; its namespace is "" where the file names none.
type heldObject struct {
	objectName
	namespace string
}

// locate fills in the references of an environment. A tree that cannot be walked is a problem, and nothing is said
// of references then.
func (r *Reader) locate(t tree.Tree, env *rollout.EnvironmentWorld) error {
	if r.options.locate == nil {
		return nil
	}
	compared := r.rules != nil && r.rules.Root() != t.Root()
	after, before := located{}, located{}
	each := func(visit func(d *rollout.Snapshot, object *rollout.Reference)) {
		for i := range env.Deployments {
			d := &env.Deployments[i]
			for j := range d.References {
				for k := range d.References[j].Objects {
					visit(d, &d.References[j].Objects[k])
				}
			}
		}
	}
	for i := range env.Deployments {
		if d := &env.Deployments[i]; r.options.locate(*env, d.Deployment, compared) {
			d.References = d.Record.References()
		}
	}
	each(func(d *rollout.Snapshot, object *rollout.Reference) { after.want(d.Deployment.Namespace, *object) })
	err := after.find(t)
	each(func(d *rollout.Snapshot, object *rollout.Reference) {
		if object.Files = after.files(d.Deployment.Namespace, *object); len(object.Files) == 0 && compared {
			before.want(d.Deployment.Namespace, *object)
		}
	})
	if err == nil && compared {
		err = before.find(r.rules.Tree)
	}
	each(func(d *rollout.Snapshot, object *rollout.Reference) {
		object.Removed = before.files(d.Deployment.Namespace, *object)
	})
	var bomb *tree.Error
	if !errors.As(err, &bomb) {
		return err
	}
	for i := range env.Deployments {
		env.Deployments[i].References = nil
	}
	env.Problems = append(env.Problems, v1alpha1.Problem{Severity: v1alpha1.Warning, File: bomb.Path,
		Message: fmt.Sprintf("where the repository holds what versions name is not known: %s", bomb)})
	return nil
}

// find looks through the files of a tree. Files of the same content are looked into once.
func (l located) find(t tree.Tree) error {
	if len(l) == 0 {
		return nil
	}
	all, err := below(t, ".", t.Root(), walk{globs: []string{"**/*.{yaml,yml,json}"}, budget: tree.NewBudget()})
	if err != nil {
		return err
	}
	if tree.IsPartial(t) {
		if err := tree.Bring(t, hashesOf(all.files)); err != nil {
			return err
		}
	}
	known := map[string][]heldObject{}
	for _, f := range all.files {
		objects, seen := known[f.hash]
		if !seen || f.hash == "" {
			data, err := t.Read(f.path, f.hash)
			if _, never := Unreadable(f.path, err); err != nil && !never {
				return err
			}
			objects = l.in(f.path, data)
			known[f.hash] = objects
		}
		for _, object := range objects {
			l.add(object, f.path)
		}
	}
	for _, namespaces := range l {
		for namespace, files := range namespaces {
			slices.Sort(files)
			namespaces[namespace] = slices.Compact(files)
		}
	}
	return nil
}

// in lists the objects of a file that are looked for. What of a file cannot be decoded, such as a template, holds
// none.
func (l located) in(file string, data []byte) []heldObject {
	named := false
	for object := range l {
		named = named || bytes.Contains(data, []byte(object.name))
	}
	if !named {
		return nil
	}
	var out []heldObject
	documents, _ := v1alpha1.Decode(file, data)
	for i := range documents {
		d := &documents[i]
		if object := (objectName{d.Kind, d.Name}); d.APIVersion == "v1" && l[object] != nil {
			out = append(out, heldObject{object, d.Namespace})
		}
	}
	return out
}
