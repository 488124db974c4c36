package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// parseAllowed reads the mutants that may live: a line with the name of each, and below it, indented, why.
func parseAllowed(text string) (map[string]string, error) {
	out := map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch reason, indented := strings.CutPrefix(line, "    "); {
		case line == "" || strings.HasPrefix(line, "#"):
		case indented && name == "":
			return nil, fmt.Errorf("read allowed.txt: a reason of no mutant: %s", reason)
		case indented:
			out[name] = strings.TrimSpace(out[name] + " " + reason)
		default:
			if _, twice := out[line]; twice {
				return nil, fmt.Errorf("read allowed.txt: %s is there twice", line)
			}
			name, out[line] = line, ""
		}
	}
	for _, name := range slices.Sorted(maps.Keys(out)) {
		if out[name] == "" {
			return nil, fmt.Errorf("read allowed.txt: no reason for %s", name)
		}
	}
	return out, nil
}

// report says what became of the mutants.
type report struct {
	allowed map[string]string
	out     io.Writer

	killed, lived int
	seen          []string
	wrong         []string
}

func (r *report) lives(m mutant) bool { return r.allowed[m.name()] != "" }

// skipped is a mutant that was not asked for.
func (r *report) skipped(m mutant) { r.seen = append(r.seen, m.name()) }

// tell prints what became of one, and counts it.
func (r *report) tell(m mutant, by string) {
	r.seen = append(r.seen, m.name())
	said := "killed by " + by
	switch {
	case by != "":
		r.killed++
		if r.lives(m) {
			r.wrong = append(r.wrong, m.name()+": is killed by "+by+", and so no longer one that may live")
		}
	case r.lives(m):
		r.lived++
		said = "may live: " + r.allowed[m.name()]
	default:
		said = "SURVIVED"
		r.wrong = append(r.wrong, m.name()+": SURVIVED")
	}
	fmt.Fprintf(r.out, "%s:%d: %s: %s: %s\n", m.file, m.line, m.function, m.what, said)
}

func (r *report) end(took time.Duration) error {
	for _, name := range slices.Sorted(maps.Keys(r.allowed)) {
		if !slices.Contains(r.seen, name) {
			r.wrong = append(r.wrong, name+": may live, but is gone")
		}
	}
	fmt.Fprintf(r.out, "\n%d mutants killed, %d that may live, in %s\n", r.killed, r.lived, took.Round(time.Second))
	if len(r.wrong) == 0 {
		return nil
	}
	return errors.New(strings.Join(append([]string{fmt.Sprintf("%d findings", len(r.wrong))}, r.wrong...), "\n  "))
}
