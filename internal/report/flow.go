package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// flow is a Mermaid flowchart of what was done and what is to come, from left to right. It keeps to what Mermaid 9 to
// 12 know: quoted labels, plain edges, classes. Colors are names, since a hash means something in commit messages;
// they are those of borders, which are seen on light and on dark pages, and each label says what it means.
type flow struct {
	nodes []node
}

type node struct {
	text  string
	class flowClass
	// since is what lies between the node before and this one, "" for nothing.
	since string
}

type flowClass string

const (
	flowDone  flowClass = "done"
	flowAsked flowClass = "asked"
	flowTodo  flowClass = "todo"
)

// Nodes of one kind that are shown; what is between them is counted.
const (
	maxDone = 3
	maxTodo = 7
)

var flowStyles = []struct{ class, style string }{
	{string(flowDone), "stroke:seagreen,stroke-width:2px"},
	{string(flowAsked), "stroke:darkorange,stroke-width:4px"},
	{string(flowTodo), "stroke-dasharray:4 4"},
}

func (f *flow) add(class flowClass, since, text string) {
	f.nodes = append(f.nodes, node{text, class, since})
}

// text of the chart. Labels are made of our own words and of plainText.
func (f *flow) text() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	classes := map[flowClass][]string{}
	nodes := f.bounded()
	for i, n := range nodes {
		id := fmt.Sprintf("n%d", i+1)
		fmt.Fprintf(&b, "    %s[\"%s\"]\n", id, n.text)
		classes[n.class] = append(classes[n.class], id)
	}
	for i := 1; i < len(nodes); i++ {
		label := ""
		if since := nodes[i].since; since != "" {
			label = "|" + since + "|"
		}
		fmt.Fprintf(&b, "    n%d -->%s n%d\n", i, label, i+1)
	}
	for _, s := range flowStyles {
		if ids := classes[flowClass(s.class)]; len(ids) > 0 {
			fmt.Fprintf(&b, "    classDef %s %s\n    class %s %s\n", s.class, s.style, strings.Join(ids, ","), s.class)
		}
	}
	return b.String()
}

// bounded leaves out the oldest of what was done and, of what is to come, what is before the last.
func (f *flow) bounded() []node {
	var done, rest []node
	for _, n := range f.nodes {
		if n.class == flowDone {
			done = append(done, n)
		} else {
			rest = append(rest, n)
		}
	}
	if n := len(done) - maxDone; n > 0 {
		done = append([]node{{text: countOf(int64(n), "earlier step") + " done", class: flowDone}}, done[n:]...)
	}
	if n := len(rest) - maxTodo; n > 0 {
		last := len(rest) - 1
		rest = append(slices.Clone(rest[:last-n]), node{text: countOf(int64(n), "more step"), class: flowTodo},
			rest[last])
	}
	return append(done, rest...)
}

// label is text of others in a chart, which a build ID or a type fits in.
func label(s string) string { return cut(plainText(s), 60) }

// flow is what was done of what the pull request is about, what it asks for, and what comes after.
func (r ProposalReport) flow() *flow {
	f := &flow{}
	switch a := r.Asked.Action; {
	case a.Evacuation != nil:
		r.stages(f, *a.Evacuation)
	case a.Kind == rollout.Ramp || a.Kind == rollout.Promote:
		r.steps(f)
	default:
		f.add(flowDone, "", "today")
		f.add(flowAsked, "", "asked for: "+cut(plainText(title(a)), 100))
	}
	return f
}

// steps are those of the rollout, with their gates and pauses, and the promotion.
func (r ProposalReport) steps(f *flow) {
	a, strategy := r.Asked.Action, r.strategy()
	if g := strategy.Gate; g != nil {
		f.add(flowDone, "", "gate "+label(g.WorkflowType)+" passed")
	}
	pause := ""
	gateAfter := func(s v1alpha1.RolloutStep, class flowClass) {
		if s.Gate != nil {
			text := "gate " + label(s.Gate.WorkflowType)
			if class == flowDone {
				text += " passed"
			}
			f.add(class, pause, text)
			pause = ""
		}
	}
	for _, s := range r.passed() {
		f.add(flowDone, pause, "at "+rollout.Percent(s.RampPercentage)+", done")
		pause = s.PauseDuration.String()
		gateAfter(s, flowDone)
	}
	if a.Kind == rollout.Promote {
		f.add(flowAsked, pause, "promotion, asked for here")
	} else {
		f.add(flowAsked, pause, "at "+rollout.Percent(a.To)+", asked for here")
		pause = ""
		if s := r.askedStep(); s != nil {
			pause = s.PauseDuration.String()
			gateAfter(*s, flowTodo)
		}
		for _, s := range r.later() {
			f.add(flowTodo, pause, "at "+rollout.Percent(s.RampPercentage))
			pause = s.PauseDuration.String()
			gateAfter(s, flowTodo)
		}
		f.add(flowTodo, pause, "promotion")
	}
	if strategy.Analysis != nil && strategy.Analysis.Bake.Duration > 0 {
		f.add(flowTodo, "", "judged for "+strategy.Analysis.Bake.String())
	}
}

// strategy of the rollout; the zero value where there is no spec.
func (r ProposalReport) strategy() v1alpha1.RolloutStrategy {
	if r.Snapshot.Spec == nil {
		return v1alpha1.RolloutStrategy{}
	}
	return r.Snapshot.Spec.Spec.Rollout
}

// passed are the steps that the target has behind it, later those after what is asked for.
func (r ProposalReport) passed() []v1alpha1.RolloutStep {
	return r.between(0, r.Asked.Action.From)
}

func (r ProposalReport) later() []v1alpha1.RolloutStep {
	return r.between(r.Asked.Action.To, 100)
}

func (r ProposalReport) between(above, upTo float64) []v1alpha1.RolloutStep {
	var out []v1alpha1.RolloutStep
	for _, s := range r.progressive() {
		if s.RampPercentage > above && s.RampPercentage <= upTo {
			out = append(out, s)
		}
	}
	return out
}

// askedStep is the step that is asked for; nil for a promotion, and for a percentage that no step has.
func (r ProposalReport) askedStep() *v1alpha1.RolloutStep {
	for _, s := range r.progressive() {
		if r.Asked.Action.Kind == rollout.Ramp && s.RampPercentage == r.Asked.Action.To {
			return &s
		}
	}
	return nil
}

func (r ProposalReport) progressive() []v1alpha1.RolloutStep {
	if s := r.strategy(); s.Strategy == v1alpha1.Progressive {
		return s.Steps
	}
	return nil
}

// stages are those of the evacuation that the spec asks for.
func (r ProposalReport) stages(f *flow, asked rollout.Evacuation) {
	all := rollout.EvacuationStages(sunsetOf(r.Snapshot).Evacuate)
	all = slices.DeleteFunc(all, func(s rollout.Evacuation) bool { return s.Stage == asked.Stage })
	all = append(all, asked)
	slices.SortStableFunc(all, func(a, b rollout.Evacuation) int { return cmp.Compare(a.After, b.After) })
	f.add(flowDone, "", label(r.Asked.Action.BuildID)+" lost its traffic")
	before := time.Duration(0)
	for _, s := range all {
		class, text := flowTodo, strings.ToLower(string(s.Stage))+" workflows"
		switch s.Stage {
		case asked.Stage:
			class = flowAsked
			if s.Target != "" {
				text += " to " + label(s.Target)
			}
			text += ", asked for here"
		case v1alpha1.EvacuateBySignal:
			text = "signal " + label(s.Signal)
		}
		if class == flowTodo && s.After <= asked.After {
			class = flowDone
			if state := r.stageState(s.Stage, asked.Attempt); state != "" {
				text += ", " + strings.ToLower(label(string(state)))
			}
		}
		f.add(class, v1alpha1.Duration{Duration: s.After - before}.String(), text)
		before = s.After
	}
}

// stageState is what became of an earlier stage, by the record; "" where it says nothing.
func (r ProposalReport) stageState(stage v1alpha1.EvacuationStage, attempt int) v1alpha1.EvacuationState {
	v := rollout.FindVersion(r.Snapshot.Record.Versions(), r.Asked.Action.BuildID)
	if v == nil {
		return ""
	}
	for _, e := range v.Evacuations {
		if e.Stage == stage && e.Attempt == attempt {
			return e.State
		}
	}
	return ""
}
