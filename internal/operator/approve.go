package operator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Which says what of all that waits for approval is meant. Its zero value is the one thing that waits.
type Which struct {
	// Build ID that it is about; "": any.
	Build string
	// Stage of an evacuation; "": any, and a raise.
	Stage v1alpha1.EvacuationStage
	// To is the percentage that a raise goes to, 100 for a promotion; nil: any, and a stage. Who looked at one proposal
	// does not answer another one that came in its place.
	To *float64
}

// Approve lets what waits for approval go on: the raise that is proposed, or a stage of an evacuation. It is decided
// again before anything is done.
func Approve(s rollout.Snapshot, p Person, which Which) (Change, error) {
	rec, w, err := waiting(s, which)
	if err != nil {
		return Change{}, err
	}
	notes := []string{"it is decided again before anything is done"}
	if w.stage != nil {
		w.stage.State = v1alpha1.EvacuationApproved
		return Change{Record: rec, Did: "approve: " + w.what(), Notes: notes}, nil
	}
	if s.ByOther {
		if commit := plan.Look(s).Asking(fmt.Sprintf("%s <%s>", p.Name, p.Email)); commit != "" {
			return Change{}, fmt.Errorf("%s asked for this, in commit %.10s: in environment %s somebody else has to "+
				"approve it, so this would not count",
				p.Name, commit, s.Environment.Name)
		}
	}
	if a := w.proposal.Approved; a != nil {
		return unchanged(rec, "approved already, by %s since %s", a.By, instant(a.At)), nil
	}
	if h := rec.Hold; h != nil {
		return Change{}, fmt.Errorf("%s is held by %s (%s): rampart resume %[1]s", s.Deployment, h.By, h.Reason)
	}
	proposal := *w.proposal
	proposal.Approved = p.asked()
	rec.Proposal = &proposal
	return Change{Record: rec, Did: "approve: " + w.what(), Notes: notes}, nil
}

// Reject holds the worker deployment where it is, until it is resumed or the spec asks for another build. A stage of an
// evacuation is declined for good.
func Reject(s rollout.Snapshot, p Person, which Which) (Change, error) {
	rec, w, err := waiting(s, which)
	if err != nil {
		return Change{}, err
	}
	if w.stage != nil {
		w.stage.State = v1alpha1.EvacuationDeclined
		return Change{Record: rec, Did: "reject: " + w.what()}, nil
	}
	proposal := *w.proposal // stays, so that a merge of it is known for what it is
	proposal.Approved, proposal.Withdrawn = nil, true
	rec.Proposal = &proposal
	rec.Hold = &v1alpha1.Hold{Kind: v1alpha1.HoldRejected, BuildID: w.proposal.BuildID, By: p.Name, Reason: p.why(),
		At: v1alpha1.NewTime(p.At)}
	return Change{Record: rec, Did: "reject: " + w.what(), Notes: []string{
		fmt.Sprintf("held where it is, until another build is asked for or it is resumed: rampart resume %s",
			s.Deployment)}}, nil
}

// awaiting is one thing that waits for approval: a proposal, or a stage of an evacuation.
type awaiting struct {
	build    string
	proposal *v1alpha1.RecordedProposal
	stage    *v1alpha1.RecordedEvacuation
}

func (w awaiting) what() string {
	switch {
	case w.stage != nil:
		return fmt.Sprintf("stage %s of the evacuation of %s", w.stage.Stage, w.build)
	case w.proposal.Kind == v1alpha1.ProposeUpdate:
		return fmt.Sprintf("the template of %s changes in place", w.build)
	case w.proposal.To >= 100:
		return fmt.Sprintf("%s becomes the current version", w.build)
	}
	return fmt.Sprintf("%s goes from %s to %s of new workflows", w.build, rollout.Percent(w.proposal.From),
		rollout.Percent(w.proposal.To))
}

// is reports whether something that waits is what is meant.
func (w Which) is(a awaiting) bool {
	switch {
	case w.Build != "" && w.Build != a.build:
		return false
	case w.Stage != "" && (a.stage == nil || a.stage.Stage != w.Stage):
		return false
	case w.To != nil && (a.proposal == nil || float32(a.proposal.To) != float32(*w.To)):
		return false
	}
	return true
}

// waiting finds the one thing that waits for approval, in a copy of the record. It is an error if there is none, or
// more than one.
func waiting(s rollout.Snapshot, which Which) (v1alpha1.RoutingSpec, awaiting, error) {
	rec, err := recordOf(s)
	if err != nil {
		return rec, awaiting{}, err
	}
	var all []awaiting
	if p := rec.Proposal; p != nil && !p.Withdrawn {
		all = append(all, awaiting{build: p.BuildID, proposal: p})
	}
	for i := range rec.Versions {
		v := &rec.Versions[i]
		v.Evacuations = slices.Clone(v.Evacuations)
		for k := range v.Evacuations {
			if e := &v.Evacuations[k]; e.State == v1alpha1.EvacuationProposed {
				all = append(all, awaiting{build: v.BuildID, stage: e})
			}
		}
	}
	there := make([]string, len(all))
	for i, w := range all {
		there[i] = w.what()
	}
	found := slices.DeleteFunc(all, func(w awaiting) bool { return !which.is(w) })
	switch {
	case len(there) == 0:
		return rec, awaiting{}, fmt.Errorf("nothing of %s waits for approval: rampart status %[1]s shows its state",
			s.Deployment)
	case len(found) == 0:
		return rec, awaiting{}, fmt.Errorf("nothing of %s that waits for approval matches --build, --to and "+
			"--stage; want one of: %s", s.Deployment, strings.Join(there, "; "))
	case len(found) > 1:
		return rec, awaiting{}, fmt.Errorf("--build, --to or --stage is required: more than one thing of %s waits for "+
			"approval: %s", s.Deployment, strings.Join(there, "; "))
	}
	return rec, found[0], nil
}
