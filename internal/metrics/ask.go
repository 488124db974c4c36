package metrics

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// answer is a value with its time, or a problem.
type answer struct {
	value float64
	// at is the sample's own time where that can be known, else the time of the evaluation; both by the server's clock.
	at       time.Time
	received time.Time // by our clock
	problem  string
	// away says that there was no answer in time, or no server to give one.
	away bool
}

// ask puts one question. Both clocks of an answer are read as near to each other as can be.
func (c *Client) ask(ctx context.Context, q question) answer {
	value, at, a := c.query(ctx, q.query, time.Time{}, q.lookback)
	if a.problem != "" {
		return a
	}
	a = answer{value: value, at: at, received: time.Now()}
	if !isSelector(q.query) {
		return a
	}
	seconds, _, failed := c.query(ctx, "timestamp("+q.query+")", at, q.lookback)
	if failed.problem != "" {
		failed.problem = "the time of its sample: " + failed.problem
		return failed
	}
	a.at = time.UnixMilli(int64(math.Round(seconds * 1000)))
	return a
}

// query gives the one number of a query, evaluated at a time or, if that is zero, at the server's.
func (c *Client) query(ctx context.Context, text string, at time.Time,
	lookback time.Duration) (float64, time.Time, answer) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	// The server gives up a little before us, so that it says itself what took so long.
	v, warnings, _, err := c.api.Query(ctx, text, at, prometheus.WithTimeout(c.timeout*9/10),
		prometheus.WithLookbackDelta(lookback))
	if err != nil {
		problem, away := c.words(err)
		return 0, time.Time{}, answer{problem: problem, away: away}
	}
	if len(warnings) > 0 {
		return 0, time.Time{}, answer{problem: "Prometheus warns: " +
			text200(strings.Join(slices.Sorted(slices.Values(warnings)), "; "))}
	}
	value, evaluated, problem := one(v)
	return value, evaluated, answer{problem: problem}
}

// one is the number of an answer with one series.
func one(v model.Value) (float64, time.Time, string) {
	vector, ok := v.(model.Vector)
	switch {
	case !ok:
		return 0, time.Time{}, "the answer is " + kind(v) + ", expected an instant vector with one series" + advice(v)
	case len(vector) == 0:
		return 0, time.Time{}, "no series: nothing matches it, or not within maxAge"
	case len(vector) > 1:
		return 0, time.Time{}, fmt.Sprintf("%d series, expected one: aggregate them, for example with sum(); the "+
			"first are %s", len(vector), first(vector))
	}
	s := vector[0]
	value := float64(s.Value)
	switch {
	case s.Histogram != nil:
		return 0, time.Time{}, "the answer is a histogram, expected a number: take a part of it, for example with " +
			"histogram_quantile()"
	case math.IsNaN(value):
		return 0, time.Time{}, "the answer is NaN, as of 0/0: there may have been no traffic"
	case math.IsInf(value, 0):
		return 0, time.Time{}, fmt.Sprintf("the answer is %v, as of a division by 0", value)
	}
	return value, s.Timestamp.Time(), ""
}

func kind(v model.Value) string {
	switch v.(type) {
	case *model.Scalar:
		return "a scalar"
	case model.Matrix:
		return "a range of samples"
	}
	return "nothing that is known"
}

func advice(v model.Value) string {
	switch v.(type) {
	case *model.Scalar:
		return ": a scalar is there even if no series is; leave scalar() out, or write vector() if it is meant"
	case model.Matrix:
		return ": use a function such as rate() or avg_over_time() on it"
	}
	return ""
}

// first names up to three series, in an order that does not change by itself.
func first(vector model.Vector) string {
	names := make([]string, len(vector))
	for i, s := range vector {
		names[i] = s.Metric.String()
	}
	slices.Sort(names)
	return text200(strings.Join(names[:min(3, len(names))], ", "))
}

var (
	stringLiteral = regexp.MustCompile(`"(\\.|[^"\\])*"|'(\\.|[^'\\])*'|` + "`[^`]*`")
	selector      = regexp.MustCompile(`^\s*([a-zA-Z_:][a-zA-Z0-9_:]*\s*(\{[^{}#]*\})?|\{[^{}#]*\})\s*$`)
)

// isSelector says whether a query is a selector and nothing else: timestamp() gives the time of the sample only for
// such a query.
func isSelector(query string) bool {
	return selector.MatchString(stringLiteral.ReplaceAllLiteralString(query, `""`))
}
