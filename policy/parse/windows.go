package parse

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// windows finds what the schema cannot: windows of a freeze that would never be open, and time zones that there are
// not.
func (p *parameters) windows() []Problem {
	freeze := []string{"rollout", "freeze"}
	out := p.zone(append(slices.Clip(freeze), "timezone"))
	list, _ := ValueAt(p.config, append(slices.Clip(freeze), "windows")).([]any)
	for i, item := range list {
		keys := append(slices.Clip(freeze), "windows", strconv.Itoa(i))
		if w, ok := item.(map[string]any); ok {
			out = append(out, p.zone(append(slices.Clip(keys), "timezone"))...)
			out = append(out, p.span(keys, w)...)
			out = append(out, p.dates(keys, w)...)
		}
	}
	return out
}

// span checks a window from one point in time to another.
func (p *parameters) span(keys []string, window map[string]any) []Problem {
	var out []Problem
	var ends [2]time.Time
	for i, key := range []string{"start", "end"} {
		text, ok := window[key].(string)
		at := append(slices.Clip(keys), key)
		if !ok || p.violated(at) {
			return nil
		}
		var err error
		if ends[i], err = time.Parse(time.RFC3339, text); err != nil {
			return []Problem{p.problem(at, "%s is not a day of the calendar", text[:len(time.DateOnly)])}
		}
	}
	if !ends[0].Before(ends[1]) {
		out = append(out, p.problem(append(slices.Clip(keys), "end"),
			"%s is not after the start, %s: the window is never open", window["end"], window["start"]))
	}
	for _, key := range []string{"days", "dates", "from", "to", "timezone"} {
		if _, ok := window[key]; ok {
			out = append(out, p.problem(append(slices.Clip(keys), key),
				"has no place beside start and end: make two windows of it"))
		}
	}
	return out
}

// dates checks that the dates of a window exist.
func (p *parameters) dates(keys []string, window map[string]any) []Problem {
	var out []Problem
	list, _ := window["dates"].([]any)
	for i, item := range list {
		text, ok := item.(string)
		at := append(slices.Clip(keys), "dates", strconv.Itoa(i))
		if !ok || p.violated(at) {
			continue
		}
		full := text
		if len(full) < len(time.DateOnly) {
			full = "2000-" + full // a leap year, as 02-29 comes in some
		}
		if _, err := time.Parse(time.DateOnly, full); err != nil {
			out = append(out, p.problem(at, "%s is not a day of the calendar", text))
		}
	}
	return out
}

// violated reports whether the schema has something to say of a parameter.
func (p *parameters) violated(keys []string) bool { return p.violations[strings.Join(keys, ".")] }

// zone checks a time zone as the policies will load it: OPA asks time.LoadLocation, and embeds the database.
func (p *parameters) zone(keys []string) []Problem {
	name, ok := ValueAt(p.config, keys).(string)
	if !ok || p.violated(keys) {
		return nil
	}
	if name == "Local" {
		return []Problem{p.problem(keys, "Local is the time zone of whichever machine decides: name one by its "+
			"place, such as Europe/Berlin")}
	}
	if _, err := time.LoadLocation(name); err == nil {
		return nil
	}
	hint := ": name one by its place, such as Europe/Berlin"
	if near := nearestZone(name); near != "" {
		hint = " (did you mean " + near + "?)"
	}
	return []Problem{p.problem(keys, "there is no time zone %s%s", name, hint)}
}

// zones are names of the time zone database, one on a line. They are for hints: what there is, time.LoadLocation says.
//
//go:embed zones.txt
var zones string

// nearestZone is the time zone that is most like a misspelled one; a place alone, such as Berlin, is looked for too.
func nearestZone(name string) string {
	names := strings.Fields(zones)
	if strings.Contains(name, "/") {
		return v1alpha1.Closest(name, names)
	}
	if name == strings.ToUpper(name) { // an abbreviation, not a place
		return ""
	}
	var places []string
	for _, n := range names {
		places = append(places, n[strings.LastIndex(n, "/")+1:])
	}
	near := v1alpha1.Closest(name, places)
	if near == "" {
		return ""
	}
	return names[slices.Index(places, near)]
}
