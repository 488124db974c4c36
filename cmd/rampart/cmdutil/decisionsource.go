package cmdutil

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

// DecisionSource gives recorded decisions.
type DecisionSource interface {
	// Decisions gives those that a filter wants in the order in which they were recorded, one at a time. An error is
	// the last thing.
	Decisions(ctx context.Context, f auditlog.Filter) iter.Seq2[auditlog.Decision, error]
	// Last is the latest about a worker deployment (namespace/name), nil where there is none.
	Last(ctx context.Context, deployment string) (*auditlog.Decision, error)
}

// DecisionFlags say where recorded decisions are.
type DecisionFlags struct{ File, Ref string }

// Add adds --decisions and --decision-ref, which exclude each other.
func (f *DecisionFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.File, "decisions", "",
		`file with recorded decisions, a line of JSON each, in place of --decision-ref; "-" is standard input`)
	AddDecisionRef(cmd, &f.Ref)
	cmd.MarkFlagsMutuallyExclusive("decisions", "decision-ref")
}

// Decisions gives the source of recorded decisions: a file, else the ref of --repo or of the clone that the folder -C
// is in.
func (a *App) Decisions(f DecisionFlags, repository RepositoryFlags) DecisionSource {
	if f.File == "" {
		return decisionRef{a, repository, f.Ref}
	}
	return decisionLines{name: f.File, in: a.In}
}

// decisionRef are the decisions on refs.
type decisionRef struct {
	*App
	repository RepositoryFlags
	ref        string
}

var _ DecisionSource = decisionRef{}

// Decisions reads the refs from the oldest decision on.
func (r decisionRef) Decisions(ctx context.Context, f auditlog.Filter) iter.Seq2[auditlog.Decision, error] {
	return RecordedDecisions(ctx, r.App, r.repository, r.ref, auditlog.Query{Filter: f})
}

// Last reads the refs from the newest decision on.
func (r decisionRef) Last(ctx context.Context, deployment string) (*auditlog.Decision, error) {
	q := auditlog.Query{Filter: auditlog.Filter{Deployment: deployment}, NewestFirst: true}
	for d, err := range RecordedDecisions(ctx, r.App, r.repository, r.ref, q) {
		return &d, err
	}
	return nil, ctx.Err()
}

// decisionLines are decisions as JSON lines in a file, or on standard input for the name "-".
type decisionLines struct {
	name string
	in   io.Reader
}

var _ DecisionSource = decisionLines{}

// DecisionsFrom reads decisions from JSON lines.
func DecisionsFrom(in io.Reader) DecisionSource { return decisionLines{name: "-", in: in} }

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

// RecordedInput is an input of policies, and what was said of it where it was recorded.
type RecordedInput struct {
	Document *policy.Document
	// Decision that it is of, nil for other inputs; Verdicts are its result, nil where it has none.
	Decision *auditlog.Decision
	Verdicts *rollout.Verdicts
}

// RecordedInputOf decodes what a decision is about, and its verdicts. A decision whose input or result is not valid is
// an error with the decision's ID.
func RecordedInputOf(d auditlog.Decision) (RecordedInput, error) {
	document, err := policy.DecodeDocument(d.Input)
	if err != nil {
		return RecordedInput{}, fmt.Errorf("decision %s: %w", d.ID, err)
	}
	out := RecordedInput{Document: document, Decision: &d}
	if len(d.Result) > 0 {
		if err := json.Unmarshal(d.Result, &out.Verdicts); err != nil {
			return RecordedInput{}, fmt.Errorf("decision %s: decode result: %w", d.ID, err)
		}
	}
	return out, nil
}
