package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
)

// decisionSource gives recorded decisions.
type decisionSource interface {
	// Decisions gives those that a filter wants in the order in which they were recorded, one at a time. An error is
	// the last thing.
	Decisions(ctx context.Context, f auditlog.Filter) iter.Seq2[auditlog.Decision, error]
	// Last is the latest about a worker deployment (namespace/name), nil where there is none.
	Last(ctx context.Context, deployment string) (*auditlog.Decision, error)
}

// decisionFlags say where recorded decisions are.
type decisionFlags struct{ file, ref string }

func (f *decisionFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "decisions", "",
		`file with recorded decisions, a line of JSON each, in place of --decision-ref; "-" is standard input`)
	addDecisionRef(cmd, &f.ref)
	cmd.MarkFlagsMutuallyExclusive("decisions", "decision-ref")
}

// decisions gives the source of recorded decisions: a file, or the ref of --repo or of the clone that the folder -C is
// in.
func (a *app) decisions(f decisionFlags, repository repositoryFlags) decisionSource {
	if f.file == "" {
		return decisionRef{a, repository, f.ref}
	}
	return decisionLines{name: f.file, in: a.in}
}

// decisionRef are the decisions on refs.
type decisionRef struct {
	*app
	repository repositoryFlags
	ref        string
}

var _ decisionSource = decisionRef{}

// Decisions reads the refs from the oldest decision on.
func (r decisionRef) Decisions(ctx context.Context, f auditlog.Filter) iter.Seq2[auditlog.Decision, error] {
	return r.recordedDecisions(ctx, r.repository, r.ref, auditlog.Query{Filter: f})
}

// Last reads the refs from the newest decision on.
func (r decisionRef) Last(ctx context.Context, deployment string) (*auditlog.Decision, error) {
	q := auditlog.Query{Filter: auditlog.Filter{Deployment: deployment}, NewestFirst: true}
	for d, err := range r.recordedDecisions(ctx, r.repository, r.ref, q) {
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

// decisionsFrom reads decisions from JSON lines.
func decisionsFrom(in io.Reader) decisionSource { return decisionLines{name: "-", in: in} }

// Decisions reads the lines as they are asked for. An error names the line, and is the last that is given.
func (l decisionLines) Decisions(ctx context.Context, f auditlog.Filter) iter.Seq2[auditlog.Decision, error] {
	return func(yield func(auditlog.Decision, error) bool) {
		if err := l.each(ctx, f, yield); err != nil {
			yield(auditlog.Decision{}, fmt.Errorf("read decisions %s: %w", l.name, err))
		}
	}
}

// each gives decisions until there are none, one cannot be read, or the caller wants no more.
func (l decisionLines) each(ctx context.Context, f auditlog.Filter, yield func(auditlog.Decision, error) bool,
) (err error) {
	in := l.in
	if l.name != "-" {
		file, err := os.Open(l.name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		in = file
	}
	n := 0
	for d, err := range auditlog.ReadLines(ctx, in) {
		if err != nil {
			return err
		}
		n++
		ok, err := wanted(d, f)
		if err != nil {
			return fmt.Errorf("decision %d: %w", n, err)
		}
		if ok && !yield(d, nil) {
			return nil
		}
	}
	return nil
}

// wanted reports whether a filter wants a decision.
func wanted(d auditlog.Decision, f auditlog.Filter) (bool, error) {
	if !f.Wants(d.Timestamp) {
		return false, nil
	}
	name, err := d.Deployment()
	return err == nil && (f.Deployment == "" || name.String() == f.Deployment), err
}

// Last reads all lines.
func (l decisionLines) Last(ctx context.Context, deployment string) (*auditlog.Decision, error) {
	var last *auditlog.Decision
	for d, err := range l.Decisions(ctx, auditlog.Filter{Deployment: deployment}) {
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
	decision *auditlog.Decision
	verdicts *rollout.Verdicts
}

// judgedOf reads what a decision is about and its result.
func judgedOf(d auditlog.Decision) (recordedInput, error) {
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
