package canary_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/canary"
)

var update = flag.Bool("update", false, "write the table in docs/analysis.md")

const (
	page       = "../../docs/analysis.md"
	tableBegin = "<!-- begin: go test ./internal/canary -update -->\n"
	tableEnd   = "<!-- end -->\n"
)

// bad is a candidate that fails more often than current.
type bad struct{ rate, times, share float64 }

// closedUntilBack simulates one stage with a bad candidate until it is turned back: the candidate's closed workflows by
// then. It is looked at about a hundred times.
func (b bad) closedUntilBack(t *testing.T, r *rand.Rand, step int) int64 {
	others := int(math.Round(float64(step) * (1 - b.share) / b.share))
	mine, theirs := newBinomial(step, b.rate*b.times), newBinomial(others, b.rate)
	in := canary.Input{Share: b.share, Alpha: v1alpha1.DefaultAlpha, Stages: 4}
	for {
		in.Candidate.Closed += int64(step)
		in.Candidate.Failed += int64(mine.draw(r))
		in.Current.Closed += int64(others)
		in.Current.Failed += int64(theirs.draw(r))
		if pearson(in) > math.Log(float64(in.Stages)/in.Alpha) && compare(t, in).Worse {
			return in.Candidate.Closed
		}
	}
}

// closed gives the median and the 90th percentile of closedUntilBack.
func (b bad) closed(t *testing.T) (median, most int64) {
	const runs = 400
	// What a workflow of the candidate tells on average if current's rate is known, which sets how often to look.
	p, q := b.rate*b.times, b.rate
	tells := p*math.Log(p/q) + (1-p)*math.Log((1-p)/(1-q))
	step := max(1, int(0.1/tells))
	r := rand.New(rand.NewPCG(11, uint64(step)))
	all := make([]int64, runs)
	for i := range all {
		all[i] = b.closedUntilBack(t, r, step)
	}
	slices.Sort(all)
	return all[runs/2], all[runs*9/10]
}

// powerTable is the Markdown table of how long it takes.
func powerTable(t *testing.T) string {
	shares := []float64{0.01, 0.1, 0.5}
	var b strings.Builder
	b.WriteString("| current fails | candidate fails |")
	for _, share := range shares {
		fmt.Fprintf(&b, " ramp at %v%% |", 100*share)
	}
	b.WriteString("\n| --- | --- |" + strings.Repeat(" --- |", len(shares)) + "\n")
	for _, rate := range []float64{0.001, 0.01, 0.1, 0.3} {
		for _, times := range []float64{2, 5, 10} {
			if rate*times >= 1 {
				continue
			}
			fmt.Fprintf(&b, "| %.4g%% | %.4g%% |", 100*rate, 100*rate*times)
			for _, share := range shares {
				median, most := bad{rate, times, share}.closed(t)
				fmt.Fprintf(&b, " %s / %s |", rounded(median), rounded(most))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// rounded gives two digits that count: more would be the luck of the draw.
func rounded(n int64) string {
	unit := math.Pow(10, max(0, math.Floor(math.Log10(float64(n)))-1))
	digits := fmt.Sprint(int64(math.Round(float64(n)/unit) * unit))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}

// The table of docs/analysis.md is what the simulation gives.
func TestPowerTableIsWhatTheSimulationGives(t *testing.T) {
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(data), tableBegin)
	require.True(t, found, "%s has no line %q", page, tableBegin)
	table, after, found := strings.Cut(rest, tableEnd)
	require.True(t, found, "%s has no line %q", page, tableEnd)
	want := powerTable(t)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+tableBegin+want+tableEnd+after), 0o644))
		return
	}
	require.Equal(t, want, table, "run the test with -update")
}
