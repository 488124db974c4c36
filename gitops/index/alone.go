package index

import (
	"path"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// RecordQuery names a worker deployment, and maybe the environment that it is in.
type RecordQuery struct {
	// Name is namespace/name, or the name alone.
	Name string
	// Environment; "": any.
	Environment string
}

// Alone finds records by themselves.
func (r *Reader) Alone(t tree.Tree, q RecordQuery) ([]rollout.Snapshot, error) {
	r = &Reader{options: r.options}
	r.begin()
	name := rollout.Name{Name: q.Name}
	if namespace, rest, ok := strings.Cut(q.Name, "/"); ok {
		name = rollout.Name{Namespace: namespace, Name: rest}
	}
	files, err := r.match(t, []string{"**/" + layout.Routing}, nil, false)
	if err != nil {
		return nil, err
	}
	var out []rollout.Snapshot
	for _, f := range files.files {
		dir := path.Dir(f.path)
		of := rollout.Name{Namespace: path.Base(path.Dir(dir)), Name: path.Base(dir)}
		if of.Name != name.Name || name.Namespace != "" && of.Namespace != name.Namespace {
			continue
		}
		s, err := r.aloneAt(t, dir)
		if err != nil {
			return nil, err
		}
		routing := s.Record.Routing
		if routing == nil || routing.Spec.WorkerDeployment != of.String() || s.Environment.Name == "" ||
			s.Environment.ManagerIdentity == "" || q.Environment != "" && s.Environment.Name != q.Environment {
			continue
		}
		s.Deployment = of
		out = append(out, s)
	}
	return out, nil
}

// aloneAt reads one record.
func (r *Reader) aloneAt(t tree.Tree, dir string) (rollout.Snapshot, error) {
	at, ok, err := tree.Lookup(t, dir)
	if err != nil || !ok {
		return rollout.Snapshot{}, err
	}
	e := &environment{Reader: r, tree: t, out: t}
	record, err := e.readRecord(recordIn{dir: dir, hash: at.Hash}, tree.NewBudget())
	if err != nil {
		return rollout.Snapshot{}, err
	}
	s := rollout.Snapshot{Record: record.Record,
		EnvironmentProblem: &rollout.Problem{Reason: rollout.InvalidConfiguration,
			Message: layout.Config + " cannot be used, and nothing is known but what the record says"}}
	if routing := record.Routing; routing != nil {
		s.Environment = v1alpha1.Environment{Name: routing.Spec.Environment,
			ManagerIdentity: routing.Spec.ManagerIdentity, Output: v1alpha1.Output{Path: path.Dir(path.Dir(dir))}}
	}
	return s, nil
}
