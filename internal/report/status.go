package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Status is what Git says of one worker deployment.
type Status struct {
	Environment string `json:"environment"`
	Name        string `json:"name"`
	SpecPath    string `json:"specPath,omitempty"`
	// SpecDigest of the spec as it is in Git, "" if it cannot be used.
	SpecDigest string `json:"specDigest,omitempty"`
	// Observed says whether the status in Git is about the spec as it is in Git.
	Observed bool `json:"observed"`
	// Target is the build ID that the spec asks for.
	Target string `json:"target,omitempty"`
	// Current and Ramping build IDs as the record desires them; Ramping "" is a ramp to unversioned workers.
	Current        string   `json:"current,omitempty"`
	Ramping        *string  `json:"ramping,omitempty"`
	RampPercentage *float64 `json:"rampPercentage,omitempty"`
	// Step of the rollout that the target has reached, of Steps; 0 before the first. 0 of 0 without steps.
	Step  int `json:"step"`
	Steps int `json:"steps"`
	// Reason and Message of the state; Reason is Pending while the status is not about this spec.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Since is when the state that Reason names began, as far as it is known.
	Since      *time.Time           `json:"since,omitempty"`
	Action     string               `json:"action,omitempty"`
	Verdict    string               `json:"verdict,omitempty"`
	Rules      []string             `json:"rules,omitempty"`
	Reasons    []string             `json:"reasons,omitempty"`
	NextStepAt *time.Time           `json:"nextStepAt,omitempty"`
	Conditions []v1alpha1.Condition `json:"conditions,omitempty"`
	// Refused is the last approval of what is proposed that did not count; nil: there was none.
	Refused *v1alpha1.Asked `json:"refused,omitempty"`
	// UnusableTemplates are WorkerResourceTemplates in Git that cannot be used: what was made from them stays as it is.
	UnusableTemplates []v1alpha1.TemplateProblem `json:"unusableTemplates,omitempty"`
	// OlderServer says what Temporal's release lacks that the worker deployment asks for; "" for nothing.
	OlderServer string `json:"olderServer,omitempty"`
	// LeftBehind are versions whose workers poll though Git has scaled them down, or removed them.
	LeftBehind []LeftBehind `json:"leftBehind,omitempty"`
	// Pods says how the target's pods are in the cluster now; "" where that was not asked for, or there is nothing to
	// say.
	Pods string `json:"pods,omitempty"`
}

// Pending is the reason shown for a spec that the bot has not answered yet.
const Pending = "Pending"

// NewStatus reads the status of a worker deployment off what Git says of it.
func NewStatus(s rollout.Snapshot) Status {
	out := Status{Environment: s.Environment.Name, Name: s.Deployment.String(), SpecPath: s.SpecPath,
		UnusableTemplates: s.UnusableTemplates()}
	if r := s.Record.Routing; r != nil {
		out.Current = r.Spec.Desired.Current
		if ramp := r.Spec.Desired.Ramping; ramp != nil {
			out.Ramping, out.RampPercentage = &ramp.BuildID, &ramp.Percentage
		}
		if p := r.Spec.Proposal; p != nil && !p.Withdrawn {
			out.Refused = p.Refused
		}
		if r.Spec.Target != nil {
			out.Target = r.Spec.Target.BuildID
		}
	}
	out.asSeen(s)
	if s.Spec != nil {
		out.SpecDigest = s.Spec.Digest()
		out.Target, _ = rollout.BuildIDFor(s.Spec.Spec, s.Record.Versions())
		out.Step, out.Steps = stepOf(s.Spec.Spec.Rollout, out)
	}
	if pods := s.Cluster.Version(out.Target); pods != nil {
		out.Pods = pods.Text()
	}
	out.readState(s)
	return out
}

// asSeen takes what has the traffic from what the bot saw last, where that does not follow the record. That is while
// somebody holds it, or the record cannot be read.
func (st *Status) asSeen(s rollout.Snapshot) {
	was := s.Record.LastStatus()
	if r := s.Record.Routing; r != nil && r.Spec.Hold == nil || was == nil || was.CurrentVersion == nil {
		return
	}
	st.Current, st.Ramping, st.RampPercentage = was.CurrentVersion.BuildID, nil, nil
	if t := was.TargetVersion; t != nil && t.RampPercent != nil {
		st.Ramping, st.RampPercentage = &t.BuildID, t.RampPercent
	}
}

// stepOf is how many steps of a progressive rollout the target has reached, and how many there are.
func stepOf(r v1alpha1.RolloutStrategy, st Status) (step, steps int) {
	if r.Strategy != v1alpha1.Progressive {
		return 0, 0
	}
	steps = len(r.Steps)
	switch {
	case st.Current != "" && st.Current == st.Target:
		return steps, steps
	case st.Ramping == nil || *st.Ramping != st.Target:
		return 0, steps
	}
	for step < steps && r.Steps[step].RampPercentage <= *st.RampPercentage {
		step++
	}
	return step, steps
}

// readState takes over the conditions and the decision, and says what they are worth.
func (st *Status) readState(s rollout.Snapshot) {
	was := s.Record.LastStatus()
	if was != nil {
		st.Conditions, st.OlderServer, st.LeftBehind = was.Conditions, was.OlderServer, leftBehind(s, was.LeftBehind)
		for _, c := range was.Conditions {
			if t := c.LastTransitionTime.UTC(); !t.IsZero() && (st.Since == nil || t.After(*st.Since)) {
				st.Since = &t
			}
		}
		if c := condition(was.Conditions, v1alpha1.ConditionReady); c != nil {
			st.Reason, st.Message = c.Reason, c.Message
		}
		st.readDecision(was.Decision)
	}
	told := st.Reason
	defer func() {
		if st.Reason != told { // it is of another state
			st.Since = nil
		}
	}()
	switch {
	case s.Record.RoutingProblem != nil:
		st.Reason, st.Message, st.Observed = string(s.Record.RoutingProblem.Reason), s.Record.RoutingProblem.Message,
			false
	case len(s.Problems) > 0:
		st.Reason, st.Message, st.Observed = string(s.Problems[0].Reason), s.Problems[0].Message, false
		if was != nil && was.Decision != nil {
			st.Message = rollout.Beside(st.Message, was.Decision.Meanwhile)
		}
	case s.Spec == nil && st.Reason == "":
		st.Reason, st.Message = string(rollout.InvalidSpec), "the spec is gone from Git"
	case s.Spec != nil && !st.Observed && was == nil:
		st.Reason, st.Message = Pending, "the bot has not seen this worker deployment yet"
	case s.Spec != nil && !st.Observed:
		st.Message = fmt.Sprintf("the bot has not seen this spec yet; before it: %s: %s",
			cmp.Or(st.Reason, "no status"), st.Message)
		st.Reason = Pending
	}
}

func (st *Status) readDecision(d *v1alpha1.Decision) {
	if d == nil {
		return
	}
	st.Observed = st.SpecDigest != "" && d.SpecDigest == st.SpecDigest
	st.Action, st.Verdict, st.Rules, st.Reasons = d.Action, d.Verdict, d.Rules, d.Reasons
	if d.Since != nil && !d.Since.IsZero() {
		st.Since = new(d.Since.UTC())
	}
	if d.NextStepAt != nil && !d.NextStepAt.IsZero() {
		st.NextStepAt = new(d.NextStepAt.UTC())
	}
}

// Condition finds a condition by its type, whatever its case; nil if there is none.
func (st Status) Condition(kind string) *v1alpha1.Condition { return condition(st.Conditions, kind) }

func condition(list []v1alpha1.Condition, kind string) *v1alpha1.Condition {
	for i := range list {
		if strings.EqualFold(list[i].Type, kind) {
			return &list[i]
		}
	}
	return nil
}

// SortStatuses sorts by environment and name.
func SortStatuses(list []Status) {
	slices.SortFunc(list, func(a, b Status) int {
		return cmp.Or(strings.Compare(a.Environment, b.Environment), strings.Compare(a.Name, b.Name))
	})
}

// WriteStatuses prints a table of statuses, with ages as of now.
func WriteStatuses(w io.Writer, list []Status, now time.Time) error {
	rows := [][]string{{"NAME", "ENVIRONMENT", "TARGET", "CURRENT", "RAMP", "STEP", "STATE", "AGE", "VERDICT",
		"MESSAGE"}}
	for _, st := range list {
		age := "-"
		if st.Since != nil {
			age = Age(now.Sub(*st.Since))
		}
		rows = append(rows, []string{st.Name, st.Environment, dash(st.Target), dash(st.Current), st.ramp(), st.step(),
			dash(st.Reason), age, st.verdict(), cut(oneLine(st.message(now)), 100)})
	}
	_, err := io.WriteString(w, aligned(rows))
	return err
}

func aligned(rows [][]string) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush() // a Builder takes everything
	return b.String()
}

// refusal says of an approval that it did not count, and what to do.
func refusal(r *v1alpha1.Asked) string {
	return fmt.Sprintf("the approval by %s does not count, somebody else has to approve: %s", r.By, r.Reason)
}

// message is the state's, after what cannot be used beside it.
func (st Status) message(now time.Time) string {
	said := st.Message
	switch {
	case len(st.UnusableTemplates) > 0:
		said = unusableTemplates(st.UnusableTemplates[:1]) + "; " + said
	case st.Refused != nil:
		said = refusal(st.Refused) + "; " + said
	}
	if st.Pods != "" && st.Reason != string(rollout.RolloutComplete) && !strings.Contains(said, st.Pods) {
		said = st.Pods + "; " + said
	}
	if st.OlderServer != "" {
		said += "; " + st.OlderServer
	}
	for _, l := range slices.Backward(st.LeftBehind) {
		said = l.what(now) + "; " + said
	}
	return said
}

func unusableTemplates(list []v1alpha1.TemplateProblem) string {
	said := make([]string, len(list))
	for i, t := range list {
		said[i] = "a template cannot be read: " + t.Message
		if t.Name != "" {
			said[i] = fmt.Sprintf("template %s cannot be used: %s", t.Name, t.Message)
		}
	}
	return strings.Join(said, "; ")
}

func (st Status) ramp() string {
	if st.RampPercentage == nil {
		return "-"
	}
	return rollout.Percent(*st.RampPercentage)
}

func (st Status) step() string {
	if st.Steps == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", st.Step, st.Steps)
}

func (st Status) verdict() string {
	if len(st.Rules) == 0 {
		return dash(st.Verdict)
	}
	return st.Verdict + " (" + strings.Join(st.Rules, ", ") + ")"
}

func dash(s string) string { return oneLine(cmp.Or(s, "-")) }

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
