package gitops

import (
	"errors"
	"fmt"
	"path"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/mirror"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// recorded reads all records below the output's path: <namespace>/<name>, each with a routing.yaml or versions.
func (e *environment) recorded() (map[rollout.Name]rollout.Record, error) {
	records := map[rollout.Name]rollout.Record{}
	root := path.Clean(e.world.Environment.Output.Path)
	top := entry{kind: dirEntry, hash: e.out.root()}
	if root != "." {
		var ok bool
		var err error
		if top, ok, err = lookup(e.out, root); err != nil || !ok || top.kind != dirEntry {
			return records, err
		}
	}
	left := newBudget()
	namespaces, err := e.out.list(root, top.hash)
	if err != nil {
		return nil, err
	}
	for _, ns := range namespaces {
		dir := path.Join(root, ns.name)
		if ns.name == kustomizationFile && ns.kind == fileEntry {
			if e.world.RootFile, err = e.recordFile(dir, ns.hash); err != nil {
				return nil, err
			}
		}
		if ns.kind != dirEntry {
			continue
		}
		names, err := e.out.list(dir, ns.hash)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if n.kind != dirEntry {
				continue
			}
			record, err := e.record(path.Join(dir, n.name), n.hash, left)
			if err != nil {
				return nil, err
			}
			if record.Routing != nil || record.RoutingProblem != nil {
				records[rollout.Name{Namespace: ns.name, Name: n.name}] = record
				e.world.Roots = append(e.world.Roots, path.Join(ns.name, n.name))
			}
		}
	}
	return records, nil
}

// record reads one record, once for each content.
func (e *environment) record(dir, hash string, left *budget) (rollout.Record, error) {
	key := dir + "\x00" + hash
	if r, ok := e.records[key]; ok && hash != "" {
		e.used.records[key] = true
		return r, nil
	}
	r := rollout.Record{Dir: dir, Tree: hash, Files: map[string]rollout.File{}}
	said := len(e.world.Problems)
	if err := e.recordFiles(&r, entry{name: ".", hash: hash}, left); err != nil {
		return r, err
	}
	e.decodeRecord(&r)
	if hash != "" && said == len(e.world.Problems) {
		e.records[key] = r
		e.used.records[key] = true
	}
	return r, nil
}

func (e *environment) recordFiles(r *rollout.Record, below entry, left *budget) error {
	dir := path.Join(r.Dir, below.name)
	entries, err := e.out.list(dir, below.hash)
	if err != nil {
		return err
	}
	for _, x := range entries {
		name := path.Join(below.name, x.name)
		if err := left.count(path.Join(dir, x.name)); err != nil {
			return err
		}
		switch x.kind {
		case dirEntry:
			if err := e.recordFiles(r, entry{name: name, hash: x.hash}, left); err != nil {
				return err
			}
		case fileEntry:
			f, err := e.recordFile(path.Join(dir, x.name), x.hash)
			if err != nil {
				return err
			}
			r.Files[name] = f
		}
	}
	return nil
}

func (e *environment) recordFile(file, hash string) (rollout.File, error) {
	data, err := e.out.read(file, hash)
	var large *mirror.TooLargeError
	if errors.As(err, &large) { // no file of ours is: it is taken for one that is not what it should be
		e.world.Problems = append(e.world.Problems, tooLarge(file))
		return rollout.File{Hash: hash}, nil
	}
	if err != nil {
		return rollout.File{}, err
	}
	if hash == "" {
		hash = blobHash(data)
	}
	return rollout.File{Hash: hash, Data: string(data)}, nil
}

// decodeRecord decodes what the bot wrote. A routing.yaml that cannot be read is a problem of this record alone: it holds
// the deployment and nothing else.
func (e *environment) decodeRecord(r *rollout.Record) {
	file, ok := r.Files[routingFile]
	if !ok {
		if len(r.Files) > 0 {
			r.RoutingProblem = &rollout.Problem{Reason: rollout.PlanGenerationFailed, Message: fmt.Sprintf(
				"%s is missing beside other files of the record: bring it back from Git's history", path.Join(r.Dir, routingFile))}
		}
		return
	}
	documents, problems := v1alpha1.Decode(path.Join(r.Dir, routingFile), []byte(file.Data))
	for _, d := range documents {
		if routing, ok := d.Object.(*v1alpha1.Routing); ok {
			r.Routing = routing
		}
	}
	if r.Routing == nil || v1alpha1.HasErrors(problems) {
		r.Routing = nil
		message := fmt.Sprintf("%s holds no Routing", path.Join(r.Dir, routingFile))
		if len(problems) > 0 {
			message = problems[0].String()
		}
		r.RoutingProblem = &rollout.Problem{Reason: rollout.PlanGenerationFailed,
			Message: message + ": mend it, or bring it back from Git's history"}
	}
	status, _ := v1alpha1.Decode(path.Join(r.Dir, statusFile), []byte(r.Files[statusFile].Data))
	for _, d := range status {
		if w, ok := d.Object.(*v1alpha1.WorkerDeployment); ok {
			r.Status = w
		}
	}
}
