package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// writeStatus writes status.yaml: the user's object, with defaults filled in as decoding does, and its status. It is
// written on a transition, where a version came to a later stage, and where the user's own metadata changed; where
// anything else of the worker deployment is written, also for any other state of a version. Else it keeps its bytes.
// Where the spec is gone or cannot be used, the object that is there keeps what it says beside its status; where there
// is none, none is written.
func (f *filer) writeStatus() error {
	if f.plan.Status == nil {
		return nil
	}
	status := *f.plan.Status
	var old *v1alpha1.WorkerDeployment
	if f.exists(layout.Status) {
		old = f.record.Status
	}
	if old != nil && old.Status != nil {
		again := TransitionKey(old.Status) != TransitionKey(&status) || versionsMoved(old.Status, &status) ||
			len(f.changes) > 0 && versionsDiffer(old.Status, &status)
		if !again && f.sameObject(old) {
			return nil
		}
		status.Decision = decidedSince(old.Status, &status)
		status.Conditions = keepTransitionTimes(status.Conditions, old.Status.Conditions)
	} else {
		status.Decision = decidedSince(nil, &status)
	}
	object, err := f.statusObject()
	if err != nil {
		return fmt.Errorf("%s: %w", layout.Status, err)
	}
	if object == nil {
		return nil
	}
	data, err := statusManifest(object, status, f.plan.Environment.CD.RampHealth)
	if err != nil {
		return fmt.Errorf("%s: %w", layout.Status, err)
	}
	f.put(layout.Status, data)
	return nil
}

// statusObject is what status.yaml says beside the status; nil if that is not known.
func (f *filer) statusObject() (map[string]any, error) {
	if f.plan.Spec == nil {
		if data := f.record.Files[layout.Status].Data; f.record.Status != nil && data != "" {
			return parseManifest(data)
		}
		return nil, nil
	}
	user := *f.plan.Spec
	user.Status = nil
	user.Metadata.Labels, user.Metadata.Annotations = ownKeys(user.Metadata.Labels), ownKeys(user.Metadata.Annotations)
	user.Metadata.Name, user.Metadata.Namespace = f.plan.Deployment.Name, f.plan.Deployment.Namespace
	object, err := user.Tree()
	if err != nil {
		return nil, err
	}
	if f.plan.Environment.CD.ByArgoCD() {
		return object, hintArgoCD(object)
	}
	return object, nil
}

// hintArgoCD lets a sync of ArgoCD apply the Deployments though the CRD of the status is not installed. Flux has no
// hint for that.
func hintArgoCD(object map[string]any) error {
	annotations, err := annotationsOf(object)
	if err != nil {
		return err
	}
	options, err := text(annotations, rollout.AnnotationArgoSync)
	if err != nil {
		return err
	}
	annotations[rollout.AnnotationArgoSync] = addOption(options, argoNoDryRun)
	return nil
}

func annotationsOf(object map[string]any) (map[string]any, error) {
	meta, err := objectIn(object, "metadata")
	if err != nil {
		return nil, err
	}
	return objectIn(meta, "annotations")
}

// fraction finds times with a fraction of a second: people read a status, so its times are to the second. Those of the
// record are exact.
var fraction = regexp.MustCompile(`"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d+Z"`)

// statusManifest puts a status and its hash into an object and encodes it.
func statusManifest(object map[string]any, status v1alpha1.WorkerDeploymentStatus,
	ramp v1alpha1.RampHealth) (string, error) {
	raw, err := json.Marshal(status)
	if err != nil {
		return "", err
	}
	raw = fraction.ReplaceAll(raw, []byte(`"${1}Z"`))
	if object["status"], err = v1alpha1.DecodeJSON(raw); err != nil {
		return "", err
	}
	annotations, err := annotationsOf(object)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	annotations[rollout.AnnotationStatusHash] = hex.EncodeToString(sum[:])
	for key, value := range summary(status) {
		putText(annotations, key, value, false)
	}
	state, _ := rollout.StateOf(status.Conditions)
	annotations[rollout.AnnotationHealth] = string(HealthOf(state, Verdict(&status), ramp))
	return manifestText(object)
}

// summary is what annotations say of a status: Flux applies no object's status, so its health checks and the columns of
// kubectl look at these. One without a value is left out.
func summary(status v1alpha1.WorkerDeploymentStatus) map[string]string {
	out := map[string]string{rollout.AnnotationTarget: "", rollout.AnnotationCurrent: "", rollout.AnnotationRamp: "",
		rollout.AnnotationSpecDigest: ""}
	for _, c := range status.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			out[rollout.AnnotationReady], out[rollout.AnnotationReason] = string(c.Status), c.Reason
		}
	}
	if d := status.Decision; d != nil {
		out[rollout.AnnotationSpecDigest] = d.SpecDigest
	}
	if c := status.CurrentVersion; c != nil {
		out[rollout.AnnotationCurrent] = c.BuildID
	}
	if t := status.TargetVersion; t != nil {
		out[rollout.AnnotationTarget] = t.BuildID
		if t.RampPercent != nil {
			out[rollout.AnnotationRamp] = rollout.Percent(*t.RampPercent)
		}
	}
	return out
}

// sameObject reports whether the user's part of the metadata is what the old status.yaml has. The rest of the user's
// object is in the transition key, by the digest of the spec.
func (f *filer) sameObject(old *v1alpha1.WorkerDeployment) bool {
	spec := f.plan.Spec
	return spec == nil || old.Kind == spec.Kind && old.APIVersion == spec.APIVersion &&
		maps.Equal(ownKeys(old.Metadata.Labels), ownKeys(spec.Metadata.Labels)) &&
		maps.Equal(ownKeys(old.Metadata.Annotations), ownKeys(spec.Metadata.Annotations))
}

// ownKeys leaves out labels or annotations that tell other tools what to do with an object, and those that are added to
// status.yaml. One that is there already stays until the status changes.
func ownKeys(all map[string]string) map[string]string {
	var own map[string]string
	for k, v := range all {
		if v1alpha1.KeyOwner(k) == "" {
			if own == nil {
				own = make(map[string]string, len(all))
			}
			own[k] = v
		}
	}
	return own
}

// keepTransitionTimes gives a condition whose value did not change the time at which it did.
func keepTransitionTimes(now, before []v1alpha1.Condition) []v1alpha1.Condition {
	now = slices.Clone(now)
	for i := range now {
		for _, b := range before {
			if b.Type == now[i].Type && b.Status == now[i].Status && !b.LastTransitionTime.IsZero() {
				now[i].LastTransitionTime = b.LastTransitionTime
			}
		}
	}
	return now
}

// decidedSince is the decision of a status with the time from which on it is the same, for the same reason of the
// conditions. That time is that of the status before, or now.
func decidedSince(before, now *v1alpha1.WorkerDeploymentStatus) *v1alpha1.Decision {
	if now.Decision == nil || len(now.Conditions) == 0 {
		return now.Decision
	}
	d := *now.Decision
	d.Since = &now.Conditions[0].LastTransitionTime
	if before == nil || before.Decision == nil || len(before.Conditions) == 0 {
		return &d
	}
	was := before.Decision
	same := before.Conditions[0].Reason == now.Conditions[0].Reason && target(before) == target(now) &&
		was.Action == d.Action && was.From == d.From && was.To == d.To &&
		was.Verdict == d.Verdict && slices.Equal(was.Rules, d.Rules)
	if same {
		d.Since = was.Since
	}
	return &d
}

// target is the build ID that a status is about, "" for none.
func target(status *v1alpha1.WorkerDeploymentStatus) string {
	if t := status.TargetVersion; t != nil {
		return t.BuildID
	}
	return ""
}

// reasonsInGit are those whose messages say what is wrong with files in Git: they change only when a person changes
// these.
var reasonsInGit = []rollout.Reason{rollout.InvalidSpec, rollout.InvalidConfiguration, rollout.ConnectionNotFound,
	rollout.TemporalConnectionNotFound}

// TransitionKey is equal for two statuses that tell a waiting person the same. The bot does not rewrite status.yaml
// between them. The key holds:
//
//   - the conditions without times, and with the messages of reasonsInGit only;
//   - the current version, the target with its step, and the versions beside them with their evacuations;
//   - the decision without times, and with the words by which a policy holds only;
//   - templates that cannot be used, and why pods do not run, not how many.
//
// Nil gives "".
func TransitionKey(status *v1alpha1.WorkerDeploymentStatus) string {
	if status == nil {
		return ""
	}
	meanwhile := ""
	if status.Decision != nil {
		meanwhile = status.Decision.Meanwhile
	}
	conditions := map[string][3]string{}
	for _, c := range status.Conditions {
		of := [3]string{string(c.Status), c.Reason}
		if slices.Contains(reasonsInGit, rollout.Reason(c.Reason)) {
			of[2] = strings.TrimSuffix(c.Message, rollout.Beside("", meanwhile))
		}
		conditions[c.Type] = of
	}
	key := struct {
		Conditions                map[string][3]string
		Target, Current           string
		Step                      *float64
		Action, From, To, Verdict string
		Rules                     []string
		SpecDigest, PullRequest   string
		Deprecated, Unrecorded    []string
		Held                      []string
		Unusable                  []v1alpha1.TemplateProblem `json:",omitempty"`
		Pods                      []string                   `json:",omitempty"`
	}{Unusable: status.UnusableTemplates, Conditions: conditions, Unrecorded: status.UnrecordedVersions,
		Held: heldBy(status)}
	for _, v := range status.DeprecatedVersions {
		text := fmt.Sprintf("%s retired: %t", v.BuildID, v.Eligible != nil && *v.Eligible)
		for _, e := range v.Evacuation {
			text += fmt.Sprintf(" %s %s", e.JobID, e.State)
		}
		key.Deprecated = append(key.Deprecated, text)
	}
	if p := status.Pods; p != nil {
		key.Pods = p.Reasons
	}
	if c := status.CurrentVersion; c != nil {
		key.Current = c.BuildID
	}
	if t := status.TargetVersion; t != nil {
		key.Target, key.Step = t.BuildID, t.RampPercent
	}
	if d := status.Decision; d != nil {
		key.Action, key.From, key.To, key.Verdict = d.Action, d.From, d.To, d.Verdict
		key.Rules, key.SpecDigest, key.PullRequest = d.Rules, d.SpecDigest, d.PullRequest
	}
	raw, err := json.Marshal(key)
	if err != nil { // only a percentage that is not a number; it cannot be written either
		return err.Error()
	}
	return string(raw)
}

// unsteady are rules of the engine whose words tell of time, memory or a network, which can differ from one cycle to
// the next.
var unsteady = []string{"policy.cancelled", "policy.fact", "policy.timeout"}

// heldBy are the words with which policy holds, sorted; nil where it does not. Numbers are left out, and times, and all
// else with a digit in it: what counts or tells the time would make a commit of each cycle.
func heldBy(status *v1alpha1.WorkerDeploymentStatus) []string {
	var said []string
	for _, c := range status.Conditions {
		if c.Reason == string(rollout.PolicyHold) {
			said = append(said, c.Message)
		}
	}
	if d := status.Decision; said != nil && d != nil {
		if slices.ContainsFunc(d.Rules, func(rule string) bool { return slices.Contains(unsteady, rule) }) {
			return nil
		}
		said = append(said, d.Reasons...)
	}
	for i, text := range said {
		words := slices.DeleteFunc(strings.Fields(text), func(word string) bool {
			return strings.ContainsFunc(word, unicode.IsDigit)
		})
		said[i] = strings.Join(words, " ")
	}
	slices.Sort(said)
	return slices.Compact(said)
}
