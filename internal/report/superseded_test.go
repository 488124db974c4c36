package report

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A decision that is about another state than the status, and older, does not explain what is so.
func TestSupersedes(t *testing.T) {
	since := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	st := Status{Observed: true, Target: "v2", Reason: "Ramping", Since: &since}
	before, after := since.Add(-time.Minute), since.Add(time.Minute)
	require.False(t, st.Supersedes(before, "v2", "Ramping"), "the same state")
	require.True(t, st.Supersedes(before, "v2", "PolicyHold"))
	require.False(t, st.Supersedes(after, "v2", "PolicyHold"), "the status is the older one")
	require.True(t, st.Supersedes(after, "v1", "Ramping"), "about another target")
	st.Observed = false
	require.True(t, st.Supersedes(after, "v2", "Ramping"), "about the spec before")
	st.Observed, st.Since = true, nil
	require.False(t, st.Supersedes(before, "v2", "PolicyHold"), "it is not known which is older")

	var b strings.Builder
	e := Explanation{Status: st, Superseded: &Superseded{DecisionID: "x", At: before, State: "PolicyHold"}}
	e.Status.Name = "payments/checkout"
	require.NoError(t, e.WriteText(&b, View{Now: after}))
	require.Contains(t, b.String(), "The last recorded decision is of 2026-01-31T11:59:00Z (2m ago), about an earlier state (PolicyHold).")
}

// The age is that of the state which is shown.
func TestSinceIsOfTheStateShown(t *testing.T) {
	at := func(minute int) v1alpha1.Time {
		return v1alpha1.NewTime(time.Date(2026, 1, 31, 12, minute, 0, 0, time.UTC))
	}
	decided := at(30)
	s := rollout.Snapshot{Record: rollout.Record{Status: &v1alpha1.WorkerDeployment{Status: &v1alpha1.WorkerDeploymentStatus{
		Conditions: []v1alpha1.Condition{{Type: v1alpha1.ConditionReady, Reason: "Ramping", LastTransitionTime: at(0)}},
		Decision:   &v1alpha1.Decision{Since: &decided}}}}}
	require.Equal(t, &decided.Time, NewStatus(s).Since)
	s.Record.Status.Status.Decision.Since = nil
	require.Equal(t, at(0).Time, *NewStatus(s).Since, "else that of the last condition that changed")
	s.Spec = &v1alpha1.WorkerDeployment{}
	require.Nil(t, NewStatus(s).Since, "Pending has no known beginning")

	s.Record.Status.Status.Decision.Verdict = "hold"
	var b strings.Builder
	require.NoError(t, NewExplanation(s).WriteText(&b, View{Now: decided.Time}))
	require.Contains(t, b.String(), "Decision  hold (about the spec before: no reason for what is so now)\n")
}

func TestRetiredVersionSaysWhatWillHappen(t *testing.T) {
	v := v1alpha1.RecordedVersion{BuildID: "v1", Retire: &v1alpha1.Asked{By: "ada"}}
	for status, want := range map[string]string{
		"Draining": "scaled down and removed, without delay, once its open workflows are closed (retired by ada)",
		"Drained":  "scaled down, then removed once its pollers are gone: no delay is waited for (retired by ada)",
		"":         "scaled down and removed once Temporal says that it is no longer needed (retired by ada)",
	} {
		l := lifecycle{status: v1alpha1.WorkerDeploymentStatus{DeprecatedVersions: []v1alpha1.VersionStatus{{BuildID: "v1", Status: status}}}}
		require.Equal(t, want, l.of(v).Waits)
	}
}

// TestVersionsThatNeverHadTraffic: what no worker registered, and what a call created, goes like a version that is
// inactive.
func TestVersionsThatNeverHadTraffic(t *testing.T) {
	made := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	v := v1alpha1.RecordedVersion{BuildID: "v1", CreatedAt: v1alpha1.NewTime(made)}
	for _, status := range []rollout.VersionStatus{rollout.StatusInactive, rollout.StatusCreated, rollout.StatusNotRegistered} {
		l := lifecycle{sunset: v1alpha1.SunsetStrategy{DeleteDelay: v1alpha1.Duration{Duration: time.Hour}},
			status: v1alpha1.WorkerDeploymentStatus{DeprecatedVersions: []v1alpha1.VersionStatus{{BuildID: "v1", Status: string(status)}}}}
		is := l.of(v)
		require.Equal(t, "never had traffic: goes after this time", is.Waits, status)
		require.Equal(t, made.Add(time.Hour), *is.WaitsUntil, status)
	}
}
