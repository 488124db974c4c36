package preview

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// NoConnectionError says that a spec's connection is not there.
type NoConnectionError struct{ Deployment, Connection string } // Connection as v1alpha1.ConnectionRef.In has it

func (e *NoConnectionError) Error() string {
	return fmt.Sprintf("%s needs %s, which is not there", e.Deployment, e.Connection)
}

// Target is the version that a spec asks for.
type Target struct {
	BuildID string
	// Files of the version, sorted by path.
	Files []rollout.TextFile
}

// NewTarget gives the target of a snapshot that has a spec, with its manifests as the bot has them, or would write
// them. Recorded ones are as they are in Git, with what the spec and the connection change in place. Errors:
// *NoConnectionError, a record that cannot be read, those of render.Files.
func NewTarget(s rollout.Snapshot) (Target, error) {
	if p := s.Record.RoutingProblem; p != nil {
		return Target{}, fmt.Errorf("%s: %s", s.Deployment, p.Message)
	}
	if s.Connection == nil {
		return Target{}, &NoConnectionError{s.Deployment.String(),
			s.Spec.Spec.WorkerOptions.ConnectionRef.In(s.Deployment.Namespace)}
	}
	plan := targetPlan(s)
	buildID := plan.Versions[0].BuildID
	changes, err := render.Files(plan, s.Record)
	if err != nil {
		return Target{}, err
	}
	files := map[string]string{}
	below := layout.VersionFile(buildID, "")
	for name, f := range s.Record.Files {
		if strings.HasPrefix(name, below) {
			files[path.Join(plan.Dir, name)] = f.Data
		}
	}
	for _, c := range changes {
		if !strings.HasPrefix(c.Path, path.Join(plan.Dir, below)+"/") {
			continue
		}
		files[c.Path] = c.Data
		if c.Delete {
			delete(files, c.Path)
		}
	}
	out := Target{BuildID: buildID}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out.Files = append(out.Files, rollout.TextFile{Path: name, Text: files[name]})
	}
	return out, nil
}

// targetPlan is the plan that writes the target version and nothing else, whatever Temporal says.
func targetPlan(s rollout.Snapshot) rollout.Plan {
	spec := s.Spec.Spec
	var record v1alpha1.RoutingSpec
	if s.Record.Routing != nil {
		record = s.Record.Routing.Spec
	}
	versions := slices.Clone(record.Versions)
	record.WorkerDeployment = s.Deployment.String()
	if record.TemporalNamespace == "" {
		record.TemporalNamespace = spec.WorkerOptions.TemporalNamespace
	}
	id, from := rollout.BuildIDFor(spec, versions)
	hash := rollout.TemplateHash(spec)
	write := rollout.VersionWrite{BuildID: id, Op: rollout.EditVersion, Guard: v1alpha1.GuardOn}
	taken := slices.Concat(s.TakenNames, rollout.TakenBy(versions))
	target := rollout.FindVersion(versions, id)
	switch {
	case target == nil:
		versions = append(versions, v1alpha1.RecordedVersion{BuildID: id, BuildIDFrom: from, TemplateHash: hash,
			Guard: v1alpha1.GuardOn, Deployment: rollout.DeploymentName(s.Deployment.Name, id, taken)})
		target = &versions[len(versions)-1]
		write.Op = rollout.RenderVersion
	case target.TemplateHash != hash:
		target.TemplateHash = hash
		write.Op = rollout.RenderVersion
	case target.ConnectionHash != s.Connection.Spec.Hash():
		write.Op = rollout.ReconnectVersion
	}
	write.Replicas = rollout.ReplicasFor(spec.Replicas, target.Replicas)
	write.Pools = rollout.PoolSubject{Deployment: s.Deployment.Name, BuildID: id, Have: target.Pools,
		Taken: taken}.Pools(spec.Pools)
	target.Pools = write.Pools
	write.Resources = targetResources(&s, record, *target)
	target.Resources = rollout.WithResources(target.Resources, write.Resources)
	if rollout.Scaled(target.Resources) {
		write.Replicas = nil
	}
	record.Versions, record.Target = versions, &v1alpha1.RoutingTarget{BuildID: id, TemplateHash: hash}
	return rollout.Plan{Deployment: s.Deployment, Environment: s.Environment, Dir: s.Record.Dir, Record: &record,
		Versions: []rollout.VersionWrite{write}, Spec: s.Spec, Connection: s.Connection}
}

// targetResources are the changes of the target's objects made from templates. What it is beside the target is what the
// record desires.
func targetResources(s *rollout.Snapshot, record v1alpha1.RoutingSpec,
	target v1alpha1.RecordedVersion) []rollout.ResourceWrite {
	of := rollout.ResourceSubject{Have: target.Resources, States: []v1alpha1.VersionState{v1alpha1.StateTarget},
		Pods: rollout.PodsWanted, Replicas: target.Replicas}
	if record.Desired.Current == target.BuildID {
		of.States = append(of.States, v1alpha1.StateCurrent)
	}
	if ramp := record.Desired.Ramping; ramp != nil && ramp.BuildID == target.BuildID {
		of.States = append(of.States, v1alpha1.StateRamping)
	}
	if n := s.Spec.Spec.Replicas; n != nil && *n == 0 {
		of.Pods = rollout.PodsUnscaled
	}
	return s.ResourceWrites(of)
}
