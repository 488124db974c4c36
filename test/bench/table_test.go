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
	what, text   string
	targets      []target
	ours, theirs []cost
	// from is of how many worker deployments on the targets are.
	from int
	// by is the line whose native git says how fast the machine is, where git does nothing like this one.
	by *line
}

// target is what a line has to come to at most.
type target struct {
	// is gives what is compared with most, and how most is said of a line.
	is   func(l medians) (is, most float64)
	said func(l medians) string
}

// medians of a line.
type medians struct{ ours, theirs cost }

// manyEnough is how many worker deployments most targets are for.
const manyEnough = 10_000

// wallRatio is how long we may take beside native git.
func wallRatio(most float64) target {
	return target{is: func(l medians) (float64, float64) { return ratio(l.ours.wall, l.theirs.wall), most },
		said: func(medians) string { return fmt.Sprintf("wall ≤ %v", most) }}
}

// wallScaled is how long we may take, scaled by the speed of native git here. On a machine where native git takes
// native for its part of the line, we may take most. Here we may take as many times that as native git takes here.
func wallScaled(most, native time.Duration) target { return scaled("wall", wallOf, most, native) }

// cpuScaled is wallScaled for our own CPU.
func cpuScaled(most, native time.Duration) target { return scaled("own CPU", cpuOf, most, native) }

func scaled(what string, of func(cost) time.Duration, most, native time.Duration) target {
	here := func(l medians) time.Duration {
		return time.Duration(float64(most) * ratio(l.theirs.wall, native))
	}
	return target{is: func(l medians) (float64, float64) { return float64(of(l.ours)), float64(here(l)) },
		said: func(l medians) string {
			return fmt.Sprintf("%s < %s at native %s: here %s", what, ms(most), ms(native), ms(here(l)))
		}}
}

// wallMost is how long we may take on any machine.
func wallMost(most time.Duration) target {
	return target{is: func(l medians) (float64, float64) { return float64(l.ours.wall), float64(most) },
		said: func(medians) string { return "wall < " + ms(most) }}
}

// memoryMost is how many bytes may be used, of those that are.
func memoryMost(is, most int64) target {
	return target{is: func(medians) (float64, float64) { return float64(is), float64(most) },
		said: func(medians) string { return "< " + megabytes(most) }}
}

// timeMost is how long something may take, of what it took.
func timeMost(is, most time.Duration) target {
	return target{is: func(medians) (float64, float64) { return float64(is), float64(most) },
		said: func(medians) string { return "< " + seconds(most) }}
}

// of says what the target is for a line, and whether it is met, if that counts.
func (t target) of(l medians, counts bool) string {
	if !counts {
		return t.said(l)
	}
	is, most := t.is(l)
	if is <= most {
		return t.said(l) + " (met)"
	}
	return t.said(l) + " (missed)"
}

func (r *line) wanted(l medians, deployments int) string {
	var out []string
	for _, t := range r.targets {
		out = append(out, t.of(l, deployments >= r.from))
	}
	return strings.Join(out, "; ")
}

func (t *table) row(what string, targets ...target) *line {
	r := &line{what: what, targets: targets, from: manyEnough}
	t.rows = append(t.rows, r)
	return r
}

// note is a line that is a text.
func (t *table) note(what, text string, targets ...target) {
	t.rows = append(t.rows, &line{what: what, targets: targets, text: text, from: manyEnough})
}

func (r *line) add(ours, theirs cost) {
	r.ours = append(r.ours, ours)
	if theirs != (cost{}) {
		r.theirs = append(r.theirs, theirs)
	}
}

// print prints the table of a number of worker deployments.
func (t *table) print(title string, deployments int) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\tours\tnative git\tratio\tours, CPU\tnative, CPU\tratio\truns\ttarget\n", title)
	for _, r := range t.rows {
		if r.text != "" {
			fmt.Fprintf(w, "%s\t%s\t\t\t\t\t\t\t%s\n", r.what, r.text, r.wanted(medians{}, deployments))
			continue
		}
		m := medians{ours: middle(r.ours)}
		if len(r.theirs) == 0 {
			if r.by != nil {
				m.theirs = middle(r.by.theirs)
			}
			fmt.Fprintf(w, "%s\t%s\t\t\t%s\t\t\t%d\t%s\n", r.what, ms(m.ours.wall), ms(m.ours.cpu), len(r.ours), r.wanted(m, deployments))
			continue
		}
		m.theirs = middle(r.theirs)
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%s\t%s\t%.2f\t%d\t%s\n", r.what, ms(m.ours.wall), ms(m.theirs.wall), ratio(m.ours.wall, m.theirs.wall),
			ms(m.ours.cpu), ms(m.theirs.cpu), ratio(m.ours.cpu, m.theirs.cpu), len(r.ours), r.wanted(m, deployments))
	}
	_ = w.Flush()
	fmt.Println(b.String())
}

func wallOf(c cost) time.Duration { return c.wall }

func cpuOf(c cost) time.Duration { return c.cpu }

// middle are the medians of some costs, each by itself.
func middle(of []cost) cost { return cost{median(of, wallOf), median(of, cpuOf)} }

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
