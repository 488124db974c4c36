package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Style says whether text carries colors.
type Style string

// The styles.
const (
	Plain   Style = "Plain"
	Colored Style = "Colored"
)

// The colors, as terminals know them.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	bold   = "\x1b[1m"
	reset  = "\x1b[0m"
)

func (s Style) paint(color, text string) string {
	if s != Colored || color == "" || text == "" {
		return text
	}
	return color + text + reset
}

// Good paints what is as it should be.
func (s Style) Good(text string) string { return s.paint(green, text) }

// Bad paints what is wrong.
func (s Style) Bad(text string) string { return s.paint(red, text) }

// effect paints an effect by its strictness. One that was recorded may be any text.
func (s Style) effect(e rollout.Effect) string {
	switch e {
	case rollout.Allow:
		return s.paint(green, string(e))
	case rollout.Warn, rollout.RequireApproval:
		return s.paint(yellow, string(e))
	}
	return s.paint(red, oneLine(string(e)))
}

func (s Style) diff(text string) string {
	if s != Colored {
		return text
	}
	var b strings.Builder
	for line := range strings.SplitAfterSeq(text, "\n") {
		body, color := strings.TrimSuffix(line, "\n"), ""
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
			color = bold
		case strings.HasPrefix(line, "+"):
			color = green
		case strings.HasPrefix(line, "-"):
			color = red
		case strings.HasPrefix(line, "@@"):
			color = cyan
		}
		b.WriteString(s.paint(color, body) + line[len(body):])
	}
	return b.String()
}

// unversioned names a build, or the workers that have none.
func unversioned(buildID string) string { return cmp.Or(buildID, "unversioned workers") }

// oneLine makes text from specs, policies and servers fit for a line of a terminal: no line ends, and what cannot be
// seen escaped.
func oneLine(s string) string { return printable.Line(s) }

// when prints a time in UTC and how far it is from now.
func when(t, now time.Time) string {
	at := t.UTC().Format(time.RFC3339)
	if d := t.Sub(now); d >= 0 {
		return at + " (in " + Age(d) + ")"
	}
	return at + " (" + Age(now.Sub(t)) + " ago)"
}

// Age prints a duration with its largest two units, such as 3h5m, to be read at a glance.
func Age(d time.Duration) string {
	d = max(d, 0)
	units := []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}}
	for i, u := range units {
		if d < u.size {
			continue
		}
		out := fmt.Sprintf("%d%s", d/u.size, u.name)
		if i+1 < len(units) {
			if rest := d % u.size / units[i+1].size; rest > 0 {
				out += fmt.Sprintf("%d%s", rest, units[i+1].name)
			}
		}
		return out
	}
	return "0s"
}
