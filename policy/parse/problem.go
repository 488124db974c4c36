package parse

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/rego"
)

// Bounds of what is read and shown.
const (
	// MaxFileSize in bytes of a module and of a data file.
	MaxFileSize = 1 << 20

	// maxSource in bytes, and maxModules, of all modules of an environment.
	maxSource  = 2 << 20
	maxModules = 1000

	MaxProblems = 100
	MaxMessage  = 4 << 10
	MaxRule     = 128
)

// Module is one Rego file, in Rego v1. Path is for messages, such as policies/gold.rego.
type Module = rego.Module

// DataFile is a YAML or JSON file with one object, merged at the root of data. Below rampart it may hold config only.
type DataFile struct{ Path, Content string }

// CheckKind says which check found a problem.
type CheckKind string

// The checks. What Compile finds has none.
const (
	CheckSyntax    CheckKind = "syntax"    // Rego v0
	CheckPackage   CheckKind = "package"   // a package that nothing asks
	CheckRule      CheckKind = "rule"      // a rule that nothing reads
	CheckShape     CheckKind = "shape"     // a rule whose answer is not what is read
	CheckName      CheckKind = "name"      // a finding under a name of the library's
	CheckInput     CheckKind = "input"     // a field of the input that is never there, a value that it never has
	CheckType      CheckKind = "type"      // terms whose types do not go together
	CheckParameter CheckKind = "parameter" // data that no file gives, or that no policy reads
	CheckMisplaced CheckKind = "misplaced" // parameters of the library in a place where nothing reads them
	CheckTest      CheckKind = "test"      // a test that does not compile
)

// Problem is something wrong with a policy or its data. Every problem of an Engine holds what policy can hold; what
// only Check finds holds nothing.
type Problem struct {
	// Path of the file.
	Path string `json:"path"`
	// Line, from 1; 0: the file as a whole.
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
	// Check that found it; "" for what Compile finds.
	Check CheckKind `json:"check,omitempty"`
}

var _ error = Problem{}

// Location is path:line, or the path alone.
func (p Problem) Location() string {
	if p.Line == 0 {
		return p.Path
	}
	return fmt.Sprintf("%s:%d", p.Path, p.Line)
}

// Error is path:line: message.
func (p Problem) Error() string { return p.Location() + ": " + p.Message }

// CompareProblems orders by file, line and message.
func CompareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Message, b.Message))
}

// ProblemsOf are the problems in an error of OPA's; those without a place belong to path. None for nil.
func ProblemsOf(path string, err error) []Problem {
	if err == nil {
		return nil
	}
	var list ast.Errors
	var one *ast.Error
	switch {
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = ast.Errors{one}
	default:
		return []Problem{{Path: path, Message: Cut(err.Error(), MaxMessage)}}
	}
	var out []Problem
	for _, x := range list {
		p := Problem{Path: path, Message: Cut(x.Message, MaxMessage)}
		if x.Location != nil && x.Location.File != "" {
			p.Path, p.Line = x.Location.File, x.Location.Row
		}
		out = append(out, p)
	}
	return out
}

// LineOf is file:line.
func LineOf(l *ast.Location) string { return fmt.Sprintf("%s:%d", l.File, l.Row) }
