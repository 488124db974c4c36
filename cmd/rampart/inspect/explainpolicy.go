package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/sandbox"
)

// explainDecision explains the last recorded decision about a worker deployment by the policies of its environment as
// they are; nil: there is none.
//
// One about an earlier state than the status tells of is named in place of explained, unless it was asked for.
func explainDecision(ctx context.Context, source cmdutil.DecisionSource, st report.Status,
	ask policyQuestion) (*report.PolicyTree, *report.Superseded, error) {
	d, err := source.Last(ctx, st.Name)
	if err != nil || d == nil {
		return nil, nil, err
	}
	if !ask.whatever {
		var in decidedOn
		if err := json.Unmarshal(d.Input, &in); err != nil {
			return nil, nil, fmt.Errorf("decode the input of decision %s: %w", d.ID, err)
		}
		if st.Supersedes(d.Timestamp, in.Plan.Target.BuildID, in.Plan.Reason) {
			return nil, &report.Superseded{DecisionID: d.ID, At: d.Timestamp, State: in.Plan.Reason}, nil
		}
	}
	in, err := cmdutil.RecordedInputOf(*d)
	if err != nil {
		return nil, nil, err
	}
	tree, err := explainJudged(ctx, in, ask)
	return tree, nil, err
}

// explainObserved explains what was decided from a snapshot.
func explainObserved(ctx context.Context, d *rollout.Decision, ask policyQuestion) (*report.PolicyTree, error) {
	document, err := policy.NewDocument(plan.Look(d.Snapshot).JudgedBy(), d.Proposal)
	if err != nil {
		return nil, err
	}
	return explainJudged(ctx, cmdutil.RecordedInput{Document: document}, ask)
}

// policyQuestion is what is asked of policies.
type policyQuestion struct {
	engine *sandbox.Engine
	// action to explain; "" for the one that policy holds most.
	action string
	// whatever says that a decision is explained even if it was superseded.
	whatever bool
}

func explainJudged(ctx context.Context, in cmdutil.RecordedInput, ask policyQuestion) (*report.PolicyTree, error) {
	verdicts := ask.engine.JudgeDocument(ctx, in.Document)
	if in.Verdicts != nil {
		verdicts = *in.Verdicts
	}
	tree := &report.PolicyTree{At: in.Document.Now(), PolicyDigest: ask.engine.Digest()}
	action := ask.action
	if action == "" {
		var err error
		if action, err = decisiveAction(in.Document, verdicts); err != nil {
			return nil, err
		}
	}
	if in.Decision != nil {
		tree.DecisionID = in.Decision.ID
	}
	if in.Verdicts != nil {
		v := verdicts.Spec
		if action != "" {
			v = verdicts.Of(action)
		}
		tree.Recorded, tree.RecordedDigest = &v, verdicts.PolicyDigest
	}
	explained := []string{action}
	if ask.action == "" && action != "" && !contained(verdicts.Spec, verdicts.Of(action)) {
		explained = append(explained, "")
	}
	for _, id := range explained {
		x, err := ask.engine.Explain(ctx, in.Document, id)
		if err != nil {
			return nil, err
		}
		tree.Explanations = append(tree.Explanations, x)
	}
	if ask.action == "" {
		for _, id := range in.Document.Actions() {
			if v, ok := verdicts.Actions[id]; ok && id != action && v.Effect.Strictness() > rollout.Allow.Strictness() {
				tree.Others = append(tree.Others, report.NewOtherVerdict(id, v))
			}
		}
	}
	return tree, nil
}

// contained reports whether a verdict says nothing that another one does not.
func contained(v, in rollout.Verdict) bool {
	return !slices.ContainsFunc(v.Findings, func(f rollout.Finding) bool {
		return !slices.ContainsFunc(in.Findings, func(g rollout.Finding) bool {
			return g.Rule == f.Rule && g.Message == f.Message && g.Location == f.Location
		})
	})
}

// decisiveAction is the action that policy holds most; of equals one about the target, and the first. "": there is none
// that policy was asked about.
func decisiveAction(d *policy.Document, verdicts rollout.Verdicts) (string, error) {
	body, err := d.MarshalJSON()
	if err != nil {
		return "", err
	}
	var in struct {
		Plan struct {
			Target struct {
				BuildID string `json:"buildID"`
			} `json:"target"`
		} `json:"plan"`
		Actions []struct {
			ID      string `json:"id"`
			BuildID string `json:"buildID"`
		} `json:"actions"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return "", fmt.Errorf("decode input: %w", err)
	}
	best, rank := "", -1
	for _, a := range in.Actions {
		v, ok := verdicts.Actions[a.ID]
		if !ok {
			continue
		}
		n := 2 * v.Effect.Strictness()
		if a.BuildID == in.Plan.Target.BuildID {
			n++
		}
		if n > rank {
			best, rank = a.ID, n
		}
	}
	return best, nil
}
