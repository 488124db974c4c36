package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/decisions"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
)

// decisionSource gives recorded decisions.
type decisionSource interface {
	// Decisions gives those that a filter wants in the order in which they were recorded, one at a time. An error is the last thing.
	Decisions(ctx context.Context, f decisions.Filter) iter.Seq2[decisions.Decision, error]
	// Last is the latest about a worker deployment (namespace/name), nil where there is none.
	Last(ctx context.Context, deployment string) (*decisions.Decision, error)
}

// decisionFlags say where recorded decisions are.
type decisionFlags struct{ file, ref string }

func (f *decisionFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "decisions", "", `file with recorded decisions, one in JSON on each line, in place of --decision-ref; "-" is standard input`)
	addDecisionRef(cmd, &f.ref)
	cmd.MarkFlagsMutuallyExclusive("decisions", "decision-ref")
}

// decisions gives the source of recorded decisions: a file, or the ref of --repo or of the clone that the folder -C is in.
func (a *app) decisions(f decisionFlags, repository repositoryFlags) decisionSource {
	if f.file == "" {
		return decisionRef{a, repository, f.ref}
	}
	return decisionLines{name: f.file, in: a.in}
}

// decisionRef are the decisions on a ref.
type decisionRef struct {
	*app
	repository repositoryFlags
	ref        string
}

var _ decisionSource = decisionRef{}

// Decisions reads the ref from the oldest on.
func (r decisionRef) Decisions(ctx context.Context, f decisions.Filter) iter.Seq2[decisions.Decision, error] {
	return r.recordedDecisions(ctx, r.repository, decisionQuery{Ref: r.ref, Deployment: f.Deployment, Since: f.Since, Order: gitops.OldestFirst})
}

// Last reads the ref from the newest on.
func (r decisionRef) Last(ctx context.Context, deployment string) (*decisions.Decision, error) {
	for d, err := range r.recordedDecisions(ctx, r.repository, decisionQuery{Ref: r.ref, Deployment: deployment, Order: gitops.NewestFirst}) {
		return &d, err
	}
	return nil, ctx.Err()
}

// decisionLines are decisions as JSON lines in a file, or on standard input for the name "-".
type decisionLines struct {
	name string
	in   io.Reader
}

var _ decisionSource = decisionLines{}

// maxDecision bounds one line, in bytes.
const maxDecision = 16 << 20

// Decisions reads the lines as they are asked for. An error names the line, and is the last that is given.
func (l decisionLines) Decisions(ctx context.Context, f decisions.Filter) iter.Seq2[decisions.Decision, error] {
	return func(yield func(decisions.Decision, error) bool) {
		if err := l.each(ctx, f, yield); err != nil {
			yield(decisions.Decision{}, fmt.Errorf("read decisions %s: %w", l.name, err))
		}
	}
}

// each gives decisions until there are none, one cannot be read, or nobody wants more.
func (l decisionLines) each(ctx context.Context, f decisions.Filter, yield func(decisions.Decision, error) bool) (err error) {
	in := l.in
	if l.name != "-" {
		file, err := os.Open(l.name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		in = file
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), maxDecision)
	for n := 1; lines.Scan(); n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var d decisions.Decision
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			return fmt.Errorf("line %d: it is no decision in JSON: %w", n, err)
		}
		if len(d.Input) == 0 {
			return fmt.Errorf("line %d: it is no decision: it has no input", n)
		}
		ok, err := wanted(d, f)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if ok && !yield(d, nil) {
			return nil
		}
	}
	return lines.Err()
}

// wanted reports whether a filter wants a decision.
func wanted(d decisions.Decision, f decisions.Filter) (bool, error) {
	if !f.Since.IsZero() && d.Timestamp.Before(f.Since) || !f.Until.IsZero() && !d.Timestamp.Before(f.Until) {
		return false, nil
	}
	name, err := d.Deployment()
	return err == nil && (f.Deployment == "" || name.String() == f.Deployment), err
}

// Last reads all lines.
func (l decisionLines) Last(ctx context.Context, deployment string) (*decisions.Decision, error) {
	var last *decisions.Decision
	for d, err := range l.Decisions(ctx, decisions.Filter{Deployment: deployment}) {
		if err != nil {
			return nil, err
		}
		if last == nil || !d.Timestamp.Before(last.Timestamp) {
			last = &d
		}
	}
	return last, ctx.Err()
}

// recordedInput is an input of policies, and what was said of it where it was recorded.
type recordedInput struct {
	document *policy.Document
	// decision that it is of, nil for other inputs; verdicts are its result.
	decision *decisions.Decision
	verdicts *rollout.Verdicts
}

// judgedOf reads what a decision is about and its result.
func judgedOf(d decisions.Decision) (recordedInput, error) {
	document, err := policy.DecodeDocument(d.Input)
	if err != nil {
		return recordedInput{}, fmt.Errorf("decision %s: %w", d.ID, err)
	}
	out := recordedInput{document: document, decision: &d}
	if len(d.Result) > 0 {
		if err := json.Unmarshal(d.Result, &out.verdicts); err != nil {
			return recordedInput{}, fmt.Errorf("decision %s: decode result: %w", d.ID, err)
		}
	}
	return out, nil
}
