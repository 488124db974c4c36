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

	"github.com/rampart-gitops/rampart/internal/decisions"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
)

// decisionSource gives recorded decisions, in the order in which they were recorded, one at a time.
type decisionSource interface {
	Decisions(ctx context.Context, f decisions.Filter) iter.Seq2[decisions.Decision, error]
}

// decisionFlags say where recorded decisions are: in a file, else on a ref.
type decisionFlags struct{ file, ref string }

func (f *decisionFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "decisions", "", `file with recorded decisions, one in JSON on each line; "-" is standard input (default: those on --decision-ref)`)
	addDecisionRef(cmd, &f.ref)
}

// decisions gives the source of recorded decisions.
func (a *app) decisions(f decisionFlags, repository repositoryFlags) decisionSource {
	if f.file == "" {
		return refDecisions{a, repository, f.ref}
	}
	return decisionLines{name: f.file, in: a.in}
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

// lastDecision is the latest that is wanted, nil where there is none.
func lastDecision(ctx context.Context, source decisionSource, f decisions.Filter) (*decisions.Decision, error) {
	if back, ok := source.(interface {
		Newest(ctx context.Context, f decisions.Filter) iter.Seq2[decisions.Decision, error]
	}); ok {
		for d, err := range back.Newest(ctx, f) {
			return &d, err
		}
		return nil, ctx.Err()
	}
	var last *decisions.Decision
	for d, err := range source.Decisions(ctx, f) {
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
