package policy

import (
	"fmt"
	"time"

	"github.com/rampart-gitops/rampart/rego"
)

// Bounds of what is read and shown.
const (
	// DefaultTimeout of one query. A query of the default library takes some 20 µs.
	DefaultTimeout = time.Second
	// MaxFileSize in bytes of a module and of a data file.
	MaxFileSize = 1 << 20

	maxProblems = 100
	maxFindings = 100
	maxMessage  = 4 << 10
	maxEvidence = 4 << 10
	maxRule     = 128
)

// Module is one Rego file, in Rego v1. Path is for messages, such as policies/gold.rego.
type Module = rego.Module

// DataFile is a YAML or JSON file with one object, merged at the root of data. Below rampart it may hold config only.
type DataFile struct{ Path, Content string }

// Config is what an Engine is made of.
type Config struct {
	// Library is the default library; nil: rego.Modules().
	Library []Module
	// Modules are the repository's own, on top. They may add rules to the four packages that are asked, and use any
	// package outside rampart for their own helpers.
	Modules []Module
	// Data files, merged over the library's defaults in order: objects key by key, anything else replaces what was there.
	Data []DataFile
	// Timeout of one query; 0: DefaultTimeout.
	Timeout time.Duration
}

// Problem is something that is broken in a policy or its data. Every problem holds what policy can hold.
type Problem struct {
	// Path of the file.
	Path string `json:"path"`
	// Line, from 1; 0: the file as a whole.
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
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
