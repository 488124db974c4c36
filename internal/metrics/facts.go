package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/errgroup"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

const (
	// parallel queries at a time, over all worker deployments.
	parallel = 4
	// callTimeouts is how many time-outs of one query all queries of a call may take together.
	callTimeouts = 2
	// lookback is how far back a selector looks by Prometheus' default.
	lookback = 5 * time.Minute
)

// Ask is the metrics of one worker deployment.
type Ask struct {
	Metrics []v1alpha1.Metric
	Values  Values
}

// Values are what the placeholders of a query stand for. One that is empty is an error for the queries that need it.
type Values struct {
	Deployment        rollout.Name
	BuildID           string // the candidate
	CurrentBuildID    string
	TemporalNamespace string
	Environment       string
}

func (v Values) byName() map[string]string {
	return map[string]string{
		"BuildID": v.BuildID, "CurrentBuildID": v.CurrentBuildID, "Deployment": v.Deployment.String(),
		"Environment": v.Environment,
		"Name":        v.Deployment.Name, "Namespace": v.Deployment.Namespace, "TemporalNamespace": v.TemporalNamespace,
	}
}

// question is a rendered query. Equal ones are asked once in a call of Facts.
type question struct {
	query string
	// lookback in whole seconds, as a server parses it.
	lookback time.Duration
}

// Facts reads the metrics of worker deployments: for each Ask, in their order, a fact for each metric by its name.
// There is no error beside: what could not be read is a fact that says so.
func (c *Client) Facts(ctx context.Context, asks []Ask) []map[string]rollout.Fact {
	type use struct {
		metric v1alpha1.Metric
		into   map[string]rollout.Fact
	}
	var questions []question
	uses := map[question][]use{}
	out := make([]map[string]rollout.Fact, len(asks))
	for i, ask := range asks {
		out[i] = make(map[string]rollout.Fact, len(ask.Metrics))
		values := ask.Values.byName()
		for _, m := range ask.Metrics {
			query, err := render(m, values)
			if err != nil {
				out[i][m.Name] = failed(m, "prometheus", err.Error())
				continue
			}
			q := question{query: query, lookback: max(time.Second, min(m.MaxAge.Truncate(time.Second), lookback))}
			if uses[q] == nil {
				questions = append(questions, q)
			}
			uses[q] = append(uses[q], use{m, out[i]})
		}
	}
	for i, a := range c.answers(ctx, questions) {
		for _, u := range uses[questions[i]] {
			u.into[u.metric.Name] = factOf(u.metric, questions[i], a)
		}
	}
	return out
}

func render(m v1alpha1.Metric, values map[string]string) (string, error) {
	if m.Prometheus == nil {
		return "", fmt.Errorf("it has no query for Prometheus")
	}
	q, err := v1alpha1.ParseQuery(m.Prometheus.Query)
	if err != nil {
		return "", err
	}
	return q.Render(values)
}

// answers asks questions through the circuit breaker. What is asked of a server that is away has the same words whether
// or not it was tried.
func (c *Client) answers(ctx context.Context, questions []question) []answer {
	out, err := c.breaker.Execute(func() ([]answer, error) { return c.askAll(ctx, questions) })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return slices.Repeat([]answer{{problem: c.away.Load().Error()}}, len(questions))
	}
	return out
}

// askAll asks questions, a few at a time, until the server turns out to be away, or the time for a call is over.
// Errors, beside the answers: *awayError and errCutOff.
func (c *Client) askAll(ctx context.Context, questions []question) ([]answer, error) {
	ctx, end := context.WithTimeoutCause(ctx, callTimeouts*c.timeout, &noTimeError{callTimeouts * c.timeout})
	defer end()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	over := func() bool { return ctx.Err() != nil }
	out := make([]answer, len(questions))
	got := make([]bool, len(questions))
	first := int(c.first.Load())
	var answered atomic.Int32
	var group errgroup.Group
	group.SetLimit(parallel)
	for n := range questions {
		i := (first + n) % len(questions)
		group.Go(func() error {
			if over() {
				return nil
			}
			before := answered.Load()
			a := c.ask(ctx, questions[i])
			switch {
			case a.problem != "" && over(): // it was cut off
				return nil
			case !a.away:
				answered.Add(1)
			case answered.Load() == before: // no other query got an answer meanwhile
				stop(&awayError{a.problem})
				return nil
			}
			out[i], got[i] = a, true
			return nil
		})
	}
	_ = group.Wait() // its functions give no errors
	err := c.conclude(context.Cause(ctx), int(answered.Load()))
	for i := range out {
		if !got[i] {
			out[i].problem = unasked(context.Cause(ctx))
		}
	}
	return c.remembered(context.Cause(ctx), questions, out), err
}

// remembered keeps the answers of a call, and gives those that had no turn in it the ones they had before.
func (c *Client) remembered(cause error, questions []question, answers []answer) []answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.last, func(_ question, a answer) bool { return time.Since(a.received) > keepLast })
	var late *noTimeError
	for i, q := range questions {
		if answers[i].problem == "" {
			c.last[q] = answers[i]
		} else if before, known := c.last[q]; known && errors.As(cause, &late) {
			answers[i] = before
		}
	}
	return answers
}

// conclude gives what the circuit breaker is told of a call. The cause is why the call ended, nil if all was asked.
// Errors: *awayError and errCutOff.
func (c *Client) conclude(cause error, answered int) error {
	var away *awayError
	var late *noTimeError
	switch {
	case errors.As(cause, &away):
		c.away.Store(away)
		return away
	case errors.As(cause, &late):
		c.first.Add(int64(answered)) // the next call begins with those that had no turn
	}
	if answered == 0 {
		return errCutOff
	}
	return nil
}

func failed(m v1alpha1.Metric, source, problem string) rollout.Fact {
	return rollout.Fact{MaxAge: m.MaxAge.Duration, Source: source, Error: fmt.Sprintf("query %s: %s", m.Name, problem)}
}

func factOf(m v1alpha1.Metric, q question, a answer) rollout.Fact {
	source := "prometheus: " + q.query
	if a.problem != "" {
		return failed(m, source, a.problem)
	}
	// The two clocks may differ by as much as a value may be old; further ahead, no age could be told.
	if a.at.Sub(a.received) > m.MaxAge.Duration {
		return failed(m, source, "the server's time is ahead of ours by more than maxAge ("+m.MaxAge.String()+
			"): look at both clocks")
	}
	at := a.at
	if at.After(a.received) {
		at = a.received
	}
	return rollout.Fact{Value: json.RawMessage(strconv.FormatFloat(a.value, 'g', -1, 64)), ObservedAt: at.UTC(),
		MaxAge: m.MaxAge.Duration, Source: source}
}
