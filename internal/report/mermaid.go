package report

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Mermaid is a simulation as a Mermaid gantt chart: how new workflows are shared out between versions, and where the
// rollout stands. It ends soon after the last of these changed: what is cleaned up later would leave no room
// for the rest.
func Mermaid(t rollout.Timetable) string {
	c := newChart(t)
	var b strings.Builder
	b.WriteString("gantt\n")
	fmt.Fprintf(&b, "    title %s\n", plainText(fmt.Sprintf("%s (%s) %s", t.Deployment, t.Environment, ended(t))))
	b.WriteString("    dateFormat YYYY-MM-DD HH:mm:ss\n")
	format := "%H:%M"
	if c.end.Sub(t.Start) >= 24*time.Hour {
		format = "%m-%d %H:%M"
	}
	fmt.Fprintf(&b, "    axisFormat %s\n", format)
	for _, lane := range c.lanes {
		fmt.Fprintf(&b, "    section %s\n", plainText(lane.name))
		for _, bar := range lane.bars {
			tag := ""
			if bar.tag != "" {
				tag = bar.tag + ", "
			}
			fmt.Fprintf(&b, "    %s :%s%s, %s\n", bar.text, tag, mermaidTime(bar.from), mermaidTime(bar.to))
		}
	}
	return b.String()
}

func ended(t rollout.Timetable) string {
	switch t.Outcome {
	case rollout.OutcomeComplete:
		return "complete after " + after(t, t.CompletedAt())
	case rollout.OutcomeTurnedBack:
		return "turned back"
	case rollout.OutcomeHeld:
		return fmt.Sprintf("held, %s", t.State.Reason)
	}
	return fmt.Sprintf("time is up, %s", t.State.Reason)
}

func mermaidTime(t time.Time) string { return t.UTC().Format(time.DateTime) }

// chart has a lane for each version that had traffic, in the order in which they got it, and one for the state.
type chart struct {
	lanes []*lane
	end   time.Time
}

type lane struct {
	name string
	bars []bar
}

// bar is a time in which something was the same.
type bar struct {
	text, tag string
	from, to  time.Time
}

func newChart(t rollout.Timetable) *chart {
	c := &chart{end: t.Start}
	for i, e := range t.Entries {
		if i == 0 || bars(e) != bars(t.Entries[i-1]) {
			c.end = e.At
		}
	}
	c.end = c.end.Add(max(c.end.Sub(t.Start)/10, time.Minute)).Truncate(time.Second)
	state := &lane{name: "State"}
	byBuild := map[string]*lane{}
	for i, e := range t.Entries {
		to := c.end
		if i+1 < len(t.Entries) {
			to = t.Entries[i+1].At
		}
		if to.After(c.end) {
			to = c.end
		}
		if !to.After(e.At) {
			continue
		}
		for _, build := range builds(e.Routing) {
			if byBuild[build] == nil {
				byBuild[build] = &lane{name: unversioned(build)}
				c.lanes = append(c.lanes, byBuild[build])
			}
			share, tag := rollout.AsWritten(e.Routing.Share(build)), ""
			if e.Routing.HasRamp && e.Routing.Ramping == build {
				tag = "active"
			}
			// Mermaid takes a line whose second character is a percent sign, such as 5%, for a comment.
			byBuild[build].add(bar{"at " + rollout.Percent(share), tag, e.At, to})
		}
		text, tag := stateBar(e)
		state.add(bar{text, tag, e.At, to})
	}
	c.lanes = append(c.lanes, state)
	return c
}

// add puts a bar at the end of a lane, and makes it one with the bar before where they are the same.
func (l *lane) add(b bar) {
	if n := len(l.bars); n > 0 && l.bars[n-1].text == b.text && l.bars[n-1].tag == b.tag &&
		l.bars[n-1].to.Equal(b.from) {
		l.bars[n-1].to = b.to
		return
	}
	l.bars = append(l.bars, b)
}

// builds are those that get new workflows.
func builds(r rollout.RoutingConfig) []string {
	var out []string
	if r.Current != "" && r.Share(r.Current) > 0 {
		out = append(out, r.Current)
	}
	if r.HasRamp && r.Percentage > 0 {
		out = append(out, r.Ramping)
	}
	return out
}

func stateBar(e rollout.TimetableEntry) (text, tag string) {
	text = dash(string(e.State.Reason))
	if rules := heldBy(e.Held); len(rules) > 0 {
		text += " by " + strings.Join(rules, " and ")
	}
	if e.State.Stalled {
		tag = "crit"
	}
	return plainText(text), tag
}

// bars is what the chart shows of an entry.
func bars(e rollout.TimetableEntry) string {
	text, tag := stateBar(e)
	return traffic(e.Routing) + text + tag
}

// plainText makes text of others fit for a Mermaid chart. There a colon ends a name, and hashes, semicolons and percent
// signs have a meaning of their own.
func plainText(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" ._-/()", r) {
			return r
		}
		return ' '
	}, tame(s))
	return dash(strings.Join(strings.Fields(s), " "))
}
