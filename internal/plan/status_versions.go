package plan

import (
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// shownVersions puts versions into a status, each with the fields that the in-cluster controller has in its place, and
// our own. They are the target, the current one, and the others that have files or traffic. The first two are there
// without files, too.
func (r *resolver) shownVersions(st *v1alpha1.WorkerDeploymentStatus, recorded []v1alpha1.RecordedVersion) {
	current, ramping := r.shownRouting()
	target := ""
	if r.target != nil {
		target = r.target.BuildID
		st.TargetVersion = r.targetStatus(recorded)
	}
	if current != "" {
		st.CurrentVersion = new(r.baseStatus(current, recorded))
	}
	for _, ver := range recorded {
		if ver.BuildID != current && ver.BuildID != target {
			st.DeprecatedVersions = append(st.DeprecatedVersions, r.deprecatedStatus(ver, recorded))
		}
	}
	if ramping != "" && ramping != current && ramping != target && rollout.FindVersion(recorded, ramping) == nil {
		st.DeprecatedVersions = append(st.DeprecatedVersions, r.baseStatus(ramping, recorded))
	}
	slices.SortFunc(st.DeprecatedVersions, func(a, b v1alpha1.VersionStatus) int {
		return strings.Compare(a.BuildID, b.BuildID)
	})
}

// shownRouting is which versions the status tells of as current and ramping: while Temporal is not read, those that the
// record desires.
func (r *resolver) shownRouting() (current, ramping string) {
	at := r.routed()
	if !r.readable() {
		at = r.desired
	}
	if at.HasRamp {
		ramping = at.Ramping
	}
	return at.Current, ramping
}

// baseStatus is what the status says of every version.
func (r *resolver) baseStatus(buildID string, recorded []v1alpha1.RecordedVersion) v1alpha1.VersionStatus {
	vs := v1alpha1.VersionStatus{BuildID: buildID, Status: string(r.routedStatus(buildID))}
	if ver := rollout.FindVersion(recorded, buildID); ver != nil {
		vs.Deployment = &v1alpha1.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment",
			Namespace: r.s.Deployment.Namespace, Name: ver.Deployment}
	}
	return vs
}

func (r *resolver) targetStatus(recorded []v1alpha1.RecordedVersion) *v1alpha1.VersionStatus {
	vs := r.baseStatus(r.target.BuildID, recorded)
	if vs.Status == string(rollout.StatusRamping) {
		vs.RampPercent = new(rollout.AsWritten(r.routed().Share(vs.BuildID)))
	}
	if g := r.shownGates(vs.BuildID); len(g) > 0 {
		vs.Gates = g
	}
	return &vs
}

func (r *resolver) deprecatedStatus(ver v1alpha1.RecordedVersion,
	recorded []v1alpha1.RecordedVersion) v1alpha1.VersionStatus {
	vs := r.baseStatus(ver.BuildID, recorded)
	vs.Eligible, vs.Evacuation = new(retired(&ver)), r.shownEvacuation(ver)
	if o := r.obs.Version(ver.BuildID); o != nil && o.Drainage == rollout.Drained {
		vs.DrainedSince = new(v1alpha1.NewTime(o.DrainageChangedAt))
	}
	return vs
}
