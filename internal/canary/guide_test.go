package canary_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/canary"
)

const guide = "../../docs/guides/canary.md"

// TestGuideFigures: the tables of the guide are what Compare gives.
func TestGuideFigures(t *testing.T) {
	data, err := os.ReadFile(guide)
	require.NoError(t, err)
	text := string(data)
	for name, table := range map[string]string{"bounds": boundsTable(t), "evidence": evidenceTable(t), "failures": failuresTable(t), "ceilings": ceilingsTable(t)} {
		begin := fmt.Sprintf("<!-- begin %s: go test ./internal/canary -run TestGuideFigures -update -->\n", name)
		before, rest, found := strings.Cut(text, begin)
		require.True(t, found, "%s has no line %q", guide, begin)
		was, after, found := strings.Cut(rest, tableEnd)
		require.True(t, found, "%s has no line %q", guide, tableEnd)
		if !*update {
			require.Equal(t, table, was, "run the test with -update")
		}
		text = before + begin + table + tableEnd + after
	}
	if *update {
		require.NoError(t, os.WriteFile(guide, []byte(text), 0o644))
	}
}

// twoSteps is the rollout of the guide: two steps and the bake, the defaults, a ramp at 10%.
func twoSteps() canary.Input {
	return canary.Input{Alpha: v1alpha1.DefaultAlpha, Tolerance: v1alpha1.DefaultTolerance, Stages: 3, Share: 0.1}
}

// boundsTable is how much evidence it takes, by steps and alpha.
func boundsTable(t *testing.T) string {
	alphas := []float64{0.05, 0.01, 0.001}
	var w strings.Builder
	w.WriteString("| steps | ceiling |")
	for _, alpha := range alphas {
		fmt.Fprintf(&w, " `alpha` %v |", alpha)
	}
	w.WriteString("\n| --- | --- |" + strings.Repeat(" --- |", len(alphas)) + "\n")
	for _, steps := range []int{1, 2, 3, 5, 10} {
		for _, ceiling := range []float64{0, 0.5} {
			fmt.Fprintf(&w, "| %d | %s |", steps, map[bool]string{true: "yes", false: "no"}[ceiling > 0])
			for _, alpha := range alphas {
				r := compare(t, canary.Input{Alpha: alpha, Stages: steps + 1, Ceiling: ceiling})
				fmt.Fprintf(&w, " %.2f (%.0f to 1) |", r.Bound, math.Pow(10, r.Bound))
			}
			w.WriteString("\n")
		}
	}
	return w.String()
}

// evidenceTable is how the evidence grows with the failures of 80 workflows.
func evidenceTable(t *testing.T) string {
	var w strings.Builder
	w.WriteString("| candidate failed, of 80 | rate | evidence | bound | turned back |\n| --- | --- | --- | --- | --- |\n")
	in := twoSteps()
	in.Current = canary.Arm{Failed: 7, Closed: 720}
	for failed := int64(0); failed <= 9; failed++ {
		in.Candidate = canary.Arm{Failed: failed, Closed: 80}
		r := compare(t, in)
		fmt.Fprintf(&w, "| %d | %.3g%% | %.2f | %.2f | %s |\n", failed, 100*rate(in.Candidate), r.Evidence, r.Bound, map[bool]string{true: "yes", false: "no"}[r.Worse])
	}
	return w.String()
}

// fewest is the smallest number of failures that turn a candidate back; -1: not even all of them.
func fewest(t *testing.T, in canary.Input, back func(canary.Result) bool) int64 {
	for in.Candidate.Failed = 0; in.Candidate.Failed <= in.Candidate.Closed; in.Candidate.Failed++ {
		if back(compare(t, in)) {
			return in.Candidate.Failed
		}
	}
	return -1
}

// ofClosed says a number of failures, and what part of the closed workflows they are.
func ofClosed(failed, closed int64) string {
	if failed < 0 {
		return "–"
	}
	return fmt.Sprintf("%d (%.2g%%)", failed, 100*float64(failed)/float64(closed))
}

func closedTable(columns []string, cell func(column int, closed int64) string) string {
	var w strings.Builder
	fmt.Fprintf(&w, "| candidate closed | %s |\n| --- |%s\n", strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
	for _, closed := range []int64{5, 10, 20, 50, 100, 200, 500, 1000, 5000} {
		fmt.Fprintf(&w, "| %d |", closed)
		for i := range columns {
			fmt.Fprintf(&w, " %s |", cell(i, closed))
		}
		w.WriteString("\n")
	}
	return w.String()
}

// failuresTable is how few failures turn a candidate back that is compared with current.
func failuresTable(t *testing.T) string {
	rates := []float64{0, 0.001, 0.01, 0.1}
	return closedTable([]string{"none of current fail", "0.1% of current", "1% of current", "10% of current"}, func(i int, closed int64) string {
		in := twoSteps()
		in.Candidate.Closed, in.Current.Closed = closed, 9*closed
		in.Current.Failed = int64(math.Round(rates[i] * float64(in.Current.Closed)))
		return ofClosed(fewest(t, in, func(r canary.Result) bool { return r.Worse }), closed)
	})
}

// ceilingsTable is how few failures turn a candidate back by a ceiling alone.
func ceilingsTable(t *testing.T) string {
	ceilings := []float64{0.01, 0.05, 0.2}
	return closedTable([]string{"ceiling 1%", "ceiling 5%", "ceiling 20%"}, func(i int, closed int64) string {
		in := twoSteps()
		in.Candidate.Closed, in.Ceiling = closed, ceilings[i]
		return ofClosed(fewest(t, in, func(r canary.Result) bool { return r.AboveCeiling }), closed)
	})
}
