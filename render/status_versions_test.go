package render

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// versionStates is a status of versions by build ID and state: of the target, the current one, and one beside them.
func versionStates(target, current, beside string) *v1alpha1.WorkerDeploymentStatus {
	st := &v1alpha1.WorkerDeploymentStatus{Conditions: []v1alpha1.Condition{{Type: v1alpha1.ConditionReady, Status: v1alpha1.False, Reason: "Ramping", LastTransitionTime: epoch}}}
	one := func(id, state string) *v1alpha1.VersionStatus {
		if state == "" {
			return nil
		}
		return &v1alpha1.VersionStatus{BuildID: id, Status: state}
	}
	st.TargetVersion, st.CurrentVersion = one("v3", target), one("v2", current)
	if v := one("v1", beside); v != nil {
		st.DeprecatedVersions = []v1alpha1.VersionStatus{*v}
	}
	return st
}

// leavesBehind is a status that tells of versions that still poll.
func leavesBehind(builds ...string) *v1alpha1.WorkerDeploymentStatus {
	st := versionStates("", "Current", "Drained")
	for _, id := range builds {
		st.LeftBehind = append(st.LeftBehind, v1alpha1.LeftBehind{BuildID: id, Deployment: "checkout-" + id, ScaledDownAt: epoch})
	}
	return st
}

// What a version went through is told once for each stage; what comes and goes waits for another commit.
func TestStatusFollowsVersions(t *testing.T) {
	for name, c := range map[string]struct {
		before, now *v1alpha1.WorkerDeploymentStatus
		alone       bool // it makes a commit of its own
		beside      bool // it is written with another change
	}{
		"nothing":                       {versionStates("Inactive", "Current", "Drained"), versionStates("Inactive", "Current", "Drained"), false, false},
		"registered":                    {versionStates("NotRegistered", "Current", ""), versionStates("Inactive", "Current", ""), true, true},
		"created":                       {versionStates("NotRegistered", "Current", ""), versionStates("Created", "Current", ""), true, true},
		"registered, once created":      {versionStates("Created", "Current", ""), versionStates("Inactive", "Current", ""), true, true},
		"draining":                      {versionStates("", "Current", "Ramping"), versionStates("", "Current", "Draining"), true, true},
		"drained":                       {versionStates("", "Current", "Draining"), versionStates("", "Current", "Drained"), true, true},
		"draining, and it was unknown":  {versionStates("", "Current", "Unknown"), versionStates("", "Current", "Draining"), true, true},
		"drained, and it was unknown":   {versionStates("", "Current", "Unknown"), versionStates("", "Current", "Drained"), true, true},
		"gone":                          {versionStates("", "Current", "Drained"), versionStates("", "Current", "Gone"), true, true},
		"unknown":                       {versionStates("", "Current", "Draining"), versionStates("", "Current", "Unknown"), false, true},
		"not unknown any more":          {versionStates("Unknown", "Current", ""), versionStates("Inactive", "Current", ""), false, true},
		"unregistered":                  {versionStates("Inactive", "Current", ""), versionStates("NotRegistered", "Current", ""), false, true},
		"draining again":                {versionStates("", "Current", "Drained"), versionStates("", "Current", "Draining"), false, true},
		"left behind":                   {leavesBehind("v0"), leavesBehind("v0", "v1"), true, true},
		"not left behind any more":      {leavesBehind("v0", "v1"), leavesBehind("v1"), false, true},
		"another one left behind":       {leavesBehind("v0"), leavesBehind("v1"), true, true},
		"another current one":           {versionStates("Inactive", "Current", ""), versionStates("Inactive", "", ""), true, true},
		"another version without files": {versionStates("Inactive", "", ""), versionStates("Inactive", "Current", ""), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, checkoutSpec, noAuth())
			s.plan.Status = c.before
			s.commit()
			require.Empty(t, s.commit())
			files := s.record.Files
			s.plan.Status = c.now
			require.Equal(t, c.alone, len(must(Files(s.plan, s.record))) > 0)
			next := *s.plan.Record
			next.Hold = &v1alpha1.Hold{Kind: v1alpha1.HoldManual, By: "ada", Reason: "lunch", At: epoch}
			s.plan.Record = &next
			want := []string{"routing.yaml"}
			if c.beside {
				want = append(want, "status.yaml")
			}
			require.Equal(t, want, paths(s, s.commit()))
			require.NotEqual(t, files, s.record.Files)
			require.Empty(t, s.commit(), "once")
		})
	}
}

// A commit that tells of states alone says which.
func TestStatesTold(t *testing.T) {
	before := versionStates("NotRegistered", "Current", "Draining")
	require.Equal(t, []string{"v1 has drained", "v3 registered"}, StatesTold(before, versionStates("Inactive", "Current", "Drained")))
	require.Equal(t, []string{"v1 is not known any more", "v3 is ramping"}, StatesTold(before, versionStates("Ramping", "Current", "Unknown")))
	require.Equal(t, []string{"v3 is created"}, StatesTold(before, versionStates("Created", "Current", "Draining")))
	require.Nil(t, StatesTold(before, versionStates("NotRegistered", "Current", "Unknown")), "that goes with another commit")
	require.Equal(t, []string{"v1 still polls"}, StatesTold(leavesBehind("v0"), leavesBehind("v0", "v1")))
	require.Nil(t, StatesTold(leavesBehind("v1"), leavesBehind()))
	more := versionStates("Inactive", "Current", "Drained")
	more.Conditions[0].Reason = "Other"
	require.Nil(t, StatesTold(before, more))
	require.Nil(t, StatesTold(nil, more))
	require.Nil(t, StatesTold(before, nil))
}
