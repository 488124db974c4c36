package bench

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// table is what was measured.
type table struct{ rows []*line }

// line is one line: costs in the order that they were measured, or a text.
type line struct {
	what, target, text string
	ours, theirs       []cost
}

func (t *table) row(what, target string) *line {
	r := &line{what: what, target: target}
	t.rows = append(t.rows, r)
	return r
}

func (t *table) note(what, target, text string) {
	t.rows = append(t.rows, &line{what: what, target: target, text: text})
}

func (r *line) add(ours, theirs cost) {
	r.ours = append(r.ours, ours)
	if theirs != (cost{}) {
		r.theirs = append(r.theirs, theirs)
	}
}

func (t *table) print(s *scale) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s worker deployments\tours\tnative git\tratio\tours, CPU\tnative, CPU\tratio\truns\ttarget\n", number(s.fleet.Deployments))
	for _, r := range t.rows {
		if r.text != "" {
			fmt.Fprintf(w, "%s\t%s\t\t\t\t\t\t\t%s\n", r.what, r.text, r.target)
			continue
		}
		wall, cpu := median(r.ours, wallOf), median(r.ours, cpuOf)
		if len(r.theirs) == 0 {
			fmt.Fprintf(w, "%s\t%s\t\t\t%s\t\t\t%d\t%s\n", r.what, ms(wall), ms(cpu), len(r.ours), r.target)
			continue
		}
		theirWall, theirCPU := median(r.theirs, wallOf), median(r.theirs, cpuOf)
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%s\t%s\t%.2f\t%d\t%s\n", r.what, ms(wall), ms(theirWall), ratio(wall, theirWall),
			ms(cpu), ms(theirCPU), ratio(cpu, theirCPU), len(r.ours), r.target)
	}
	_ = w.Flush()
	fmt.Println(b.String())
}

func wallOf(c cost) time.Duration { return c.wall }

func cpuOf(c cost) time.Duration { return c.cpu }

func median(of []cost, part func(cost) time.Duration) time.Duration {
	list := make([]time.Duration, len(of))
	for i, c := range of {
		list[i] = part(c)
	}
	slices.Sort(list)
	return list[len(list)/2]
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)) }

func megabytes(n int64) string { return fmt.Sprintf("%d MB", n>>20) }

func number(n int) string {
	s := fmt.Sprint(n)
	if len(s) > 4 {
		return s[:len(s)-3] + " " + s[len(s)-3:]
	}
	return s
}
