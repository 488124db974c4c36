package v1alpha1

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Severity says how much a problem matters.
type Severity string

// The severities. A document with an Error has no Object; a Warning is for a person to read.
const (
	Error   Severity = "Error"
	Warning Severity = "Warning"
)

// Problem is something wrong in a file, at a place that an editor can jump to.
type Problem struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	// Line and Column count from 1; 0 is the file as a whole.
	Line   int `json:"line"`
	Column int `json:"column,omitempty"`
	// Path of the field inside its object, such as spec.rollout.steps[1].rampPercentage; "" is the object or the file.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	// Suggestion is what to write instead, "" if nothing is near enough.
	Suggestion string `json:"suggestion,omitempty"`
}

var _ error = Problem{}

// Error gives file:line: path: message (did you mean suggestion?).
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		b.WriteString(":" + strconv.Itoa(p.Line))
	}
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Suggestion != "" {
		b.WriteString(" (did you mean " + p.Suggestion + "?)")
	}
	return b.String()
}

// String is Error.
func (p Problem) String() string { return p.Error() }

// HasErrors says whether one of the problems is an Error.
func HasErrors(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return p.Severity == Error })
}

// maxProblems of one file are reported. More do not help, and a hostile file could ask for a million.
const maxProblems = 100

// report collects the problems of a file.
type report struct {
	file     string
	problems []Problem
}

func (r *report) full() bool { return len(r.problems) >= maxProblems }

func (r *report) add(p Problem) {
	switch {
	case r.full():
		return
	case len(r.problems) == maxProblems-1:
		p = Problem{Severity: Error, Line: p.Line, Message: "too many problems: the rest of the file was not checked"}
	}
	p.File = r.file
	r.problems = append(r.problems, p)
}

func (r *report) at(n *node, s Severity, message string) {
	r.add(Problem{Severity: s, Line: n.line, Column: n.column, Path: n.path(), Message: message})
}

func (r *report) errorf(n *node, format string, args ...any) {
	r.at(n, Error, fmt.Sprintf(format, args...))
}

func (r *report) warnf(n *node, format string, args ...any) {
	r.at(n, Warning, fmt.Sprintf(format, args...))
}

// suggest reports an error and what to write instead.
func (r *report) suggest(n *node, suggestion, format string, args ...any) {
	r.add(Problem{Severity: Error, Line: n.line, Column: n.column, Path: n.path(),
		Message: fmt.Sprintf(format, args...), Suggestion: suggestion})
}

// sortProblems puts problems in the order of the file; those of one place keep the order they were found in.
func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
}

// maxNameLength is the longest name that a suggestion is sought for. No known name is near it.
const maxNameLength = 64

// Closest gives the known name that is nearest to name. Nearest is by edit distance, within a third of its length, or
// else the only one that has name as a part, such as ArgoCD for argo. "": there is none.
func Closest(name string, known []string) string {
	if len(name) > maxNameLength {
		return ""
	}
	name = strings.ToLower(name)
	best, bestDistance := "", min(max(1, len(name)/3), len(name)-1)+1
	part, parts := "", 0
	for _, k := range known {
		lower := strings.ToLower(k)
		if d := distance(name, lower, bestDistance); d < bestDistance {
			best, bestDistance = k, d
		}
		if len(name) >= 4 && strings.Contains(lower, name) {
			part = k
			parts++
		}
	}
	if best == "" && parts == 1 {
		return part
	}
	return best
}

// distance is the optimal string alignment distance (insert, delete, replace, swap neighbors) of two names in bytes.
// It gives limit as soon as it is known to be no less.
func distance(a, b string, limit int) int {
	if max(len(a), len(b))-min(len(a), len(b)) >= limit {
		return limit
	}
	var rows [3][]int
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	before, last, row := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least >= limit {
			return limit
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit)
}

// quote makes what a user wrote fit for a message: quoted, and cut if it is long.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}
