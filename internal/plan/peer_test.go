package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// The status of the in-cluster controller, field by field, as its reference describes it: its module cannot be had
// here.
type (
	peerObject struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              peerSpec   `json:"spec,omitempty"`
		Status            peerStatus `json:"status,omitempty"`
	}
	peerSpec struct {
		Replicas                *int32                 `json:"replicas,omitempty"`
		Template                corev1.PodTemplateSpec `json:"template"`
		MinReadySeconds         int32                  `json:"minReadySeconds,omitempty"`
		ProgressDeadlineSeconds *int32                 `json:"progressDeadlineSeconds,omitempty"`
		Rollout                 struct {
			Strategy string `json:"strategy"`
			Steps    []struct {
				RampPercentage int             `json:"rampPercentage"`
				PauseDuration  metav1.Duration `json:"pauseDuration"`
			} `json:"steps,omitempty"`
			Gate *struct {
				WorkflowType string          `json:"workflowType"`
				Input        json.RawMessage `json:"input,omitempty"`
				InputFrom    *struct {
					ConfigMapKeyRef *corev1.ConfigMapKeySelector `json:"configMapKeyRef,omitempty"`
					SecretKeyRef    *corev1.SecretKeySelector    `json:"secretKeyRef,omitempty"`
				} `json:"inputFrom,omitempty"`
			} `json:"gate,omitempty"`
		} `json:"rollout"`
		Sunset struct {
			ScaledownDelay *metav1.Duration `json:"scaledownDelay,omitempty"`
			DeleteDelay    *metav1.Duration `json:"deleteDelay,omitempty"`
		} `json:"sunset"`
		WorkerOptions struct {
			ConnectionRef       peerConnectionRef `json:"connectionRef"`
			TemporalNamespace   string            `json:"temporalNamespace"`
			UnsafeCustomBuildID string            `json:"unsafeCustomBuildID,omitempty"`
		} `json:"workerOptions"`
	}
	peerConnectionRef struct {
		Kind string `json:"kind,omitempty"`
		Name string `json:"name"`
	}
	peerBase struct {
		BuildID      string                  `json:"buildID"`
		Status       string                  `json:"status"`
		HealthySince *metav1.Time            `json:"healthySince,omitempty"`
		Deployment   *corev1.ObjectReference `json:"deployment,omitempty"`
		TaskQueues   []struct {
			Name string `json:"name"`
		} `json:"taskQueues,omitempty"`
		ManagedBy string `json:"managedBy,omitempty"`
	}
	peerTarget struct {
		peerBase      `json:",inline"`
		TestWorkflows []struct {
			WorkflowID string `json:"workflowID"`
			RunID      string `json:"runID"`
			Status     string `json:"status"`
			TaskQueue  string `json:"taskQueue"`
		} `json:"testWorkflows,omitempty"`
		RampPercentage     *float32     `json:"rampPercentage,omitempty"`
		RampingSince       *metav1.Time `json:"rampingSince,omitempty"`
		RampLastModifiedAt *metav1.Time `json:"rampLastModifiedAt,omitempty"`
	}
	peerDeprecated struct {
		peerBase            `json:",inline"`
		DrainedSince        *metav1.Time `json:"drainedSince,omitempty"`
		EligibleForDeletion bool         `json:"eligibleForDeletion,omitempty"`
	}
	peerStatus struct {
		TargetVersion         peerTarget         `json:"targetVersion"`
		CurrentVersion        *peerBase          `json:"currentVersion,omitempty"`
		DeprecatedVersions    []*peerDeprecated  `json:"deprecatedVersions,omitempty"`
		VersionConflictToken  []byte             `json:"versionConflictToken,omitempty"`
		LastModifierIdentity  string             `json:"lastModifierIdentity,omitempty"`
		ManagerIdentity       string             `json:"managerIdentity,omitempty"`
		VersionCount          int32              `json:"versionCount,omitempty"`
		ObservedConnectionRef *peerConnectionRef `json:"observedConnectionRef,omitempty"`
		Conditions            []metav1.Condition `json:"conditions,omitempty"`
	}
)

// withoutOurs removes the fields that Rampart adds, which docs/objects.md lists.
func withoutOurs(object map[string]any) {
	at := func(in map[string]any, path ...string) map[string]any {
		for _, key := range path {
			in, _ = in[key].(map[string]any)
		}
		return in
	}
	spec, status := at(object, "spec"), at(object, "status")
	delete(spec, "pools")
	delete(spec, "strategy")
	delete(at(spec, "rollout"), "rollback")
	delete(at(spec, "rollout"), "analysis")
	delete(at(spec, "rollout", "gate"), "onFailure")
	delete(at(spec, "rollout", "gate"), "timeout")
	delete(at(spec, "sunset"), "evacuate")
	steps, _ := at(spec, "rollout")["steps"].([]any)
	for _, step := range steps {
		delete(step.(map[string]any), "gate")
	}
	delete(status, "decision")
	delete(status, "unrecordedVersions")
	delete(status, "unusableTemplates")
	delete(status, "olderServer")
	deprecated, _ := status["deprecatedVersions"].([]any)
	for _, v := range deprecated {
		delete(v.(map[string]any), "evacuation")
	}
}

// asPeer decodes the status.yaml of a plan as the in-cluster controller's object, strictly; false: the plan writes
// none.
func asPeer(t require.TestingT, s rollout.Snapshot, p rollout.Plan) (peerObject, bool) {
	var out peerObject
	if p.Status == nil {
		return out, false
	}
	rec := *p.Record
	rec.Versions = nil // whose files have no hashes in these tests
	files, err := render.Files(rollout.Plan{Deployment: p.Deployment, Environment: p.Environment, Dir: p.Dir, Spec: p.Spec, Connection: p.Connection,
		Record: &rec, Status: p.Status}, rollout.Record{Dir: s.Record.Dir})
	var unreadable *render.UnreadableError
	if errors.As(err, &unreadable) { // a spec that only a test has
		return out, false
	}
	require.NoError(t, err)
	for _, f := range files {
		if f.Path != p.Dir+"/status.yaml" {
			continue
		}
		var object map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(f.Data), &object))
		withoutOurs(object)
		data, err := json.Marshal(object)
		require.NoError(t, err)
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&out), string(data))
		return out, true
	}
	return out, false
}

// TestStatusIsThePeers: whatever a row decides, the status that tells of it decodes strictly into the in-cluster
// controller's types once our own fields are removed.
func TestStatusIsThePeers(t *testing.T) {
	told := 0
	for _, group := range [][]rowCase{inputRows(), retireRows(), retreatRows(), lostRows(), raiseRows(), resourceRows(), besideRows()} {
		for _, c := range group {
			t.Run(c.row+"/"+c.name, func(t *testing.T) {
				s := of(c.given, func(g *given) {
					if g.Spec == nil {
						return
					}
					spec := *g.Spec
					for i, step := range spec.Spec.Rollout.Steps { // a fraction is ours
						spec.Spec.Rollout.Steps[i].RampPercentage = max(1, float64(int(step.RampPercentage)))
					}
					g.Spec = &spec
				})
				p := decide(t, s, allowed)
				is, written := asPeer(t, s, p)
				if !written {
					return
				}
				told++
				for _, condition := range is.Status.Conditions {
					require.NotEmpty(t, condition.Type)
					require.False(t, condition.LastTransitionTime.IsZero())
				}
				require.Equal(t, p.Target != nil, is.Status.TargetVersion.BuildID != "", "the target is told of with and without files")
			})
		}
	}
	require.Greater(t, told, 50)
}

// TestStatusOfVersionsWithoutFiles: what has traffic or is asked for is told of, files or not.
func TestStatusOfVersionsWithoutFiles(t *testing.T) {
	noFiles := func(tag string) change {
		return func(g *given) { g.rec.Versions = nil }
	}
	for name, c := range map[string]struct {
		given                       change
		judge                       func(rollout.Proposal) rollout.Verdicts
		target, current, deprecated string // build and state
	}{
		"the current one of a takeover": {all(noFiles("v1"), asks("v2")), allowed, "v2 NotRegistered", "v1 Current", ""},
		"a target that is held":         {asks("v2"), holdsAll, "v2 NotRegistered", "v1 Current", ""},
		"a ramp of a takeover":          {all(rampsAt(10, time.Minute), noFiles("v2"), func(g *given) { g.rec.Basis, g.rec.Decided = nil, nil }, foreign(), wants("v3")), allowed, "v3 NotRegistered", "v1 Current", "v2 Ramping"},
		"Temporal cannot be read": {all(rampsAt(10, time.Minute), func(g *given) {
			g.Observation = rollout.Observation{At: noon, Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed, Message: "no"}}
		}), allowed, "v2 Unknown", "v1 Unknown", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := decide(t, of(c.given), c.judge)
			say := func(v *v1alpha1.VersionStatus) string {
				if v == nil {
					return ""
				}
				return named(v.BuildID + " " + v.Status)
			}
			deprecated := ""
			for _, v := range p.Status.DeprecatedVersions {
				deprecated += say(&v)
			}
			require.Equal(t, []string{c.target, c.current, c.deprecated}, []string{say(p.Status.TargetVersion), say(p.Status.CurrentVersion), deprecated})
		})
	}
}

// holdsAll is a policy that holds everything.
func holdsAll(p rollout.Proposal) rollout.Verdicts {
	v := allowed(p)
	for _, a := range p.Actions {
		v.Actions[a.ID] = effect(rollout.HoldEffect)
	}
	v.Spec = effect(rollout.HoldEffect)
	return v
}

// TestRetiredMidRamp: what the status says when the ramp is taken back is what it says once it was.
func TestRetiredMidRamp(t *testing.T) {
	for _, how := range []v1alpha1.RetireCurrent{v1alpha1.KeepCurrent, v1alpha1.UnrouteProven} {
		ramped := decide(t, of(rampsAt(10, time.Minute), retires(how, time.Minute)), allowed)
		require.Equal(t, []string{"ClearRamp  0"}, sayCall(ramped.Lower))
		after := decide(t, of(rampsAt(10, time.Minute), retires(how, time.Minute), routes("v1", "", 0, time.Second), desires("v1", "", 0)), allowed)
		require.Nil(t, after.Lower)
		require.Equal(t, condition(after.Status, v1alpha1.ConditionReady).Message, condition(ramped.Status, v1alpha1.ConditionReady).Message, how)
		require.Equal(t, render.TransitionKey(after.Status), render.TransitionKey(ramped.Status), how)
	}
}
