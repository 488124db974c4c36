package policy

import (
	"fmt"

	"github.com/rampart-gitops/rampart/rego"
)

// Bounds of what is read and shown.
const (
	// MaxFileSize in bytes of a module and of a data file.
	MaxFileSize = 1 << 20

	// maxSource in bytes, and maxModules, of all modules of an environment.
	maxSource  = 2 << 20
	maxModules = 1000

	maxProblems = 100
	// maxRead is how many findings of a rule set are read; more are an error.
	maxRead     = 1000
	maxFindings = 100
	maxMessage  = 4 << 10
	maxEvidence = 4 << 10
	maxRule     = 128
)

// Module is one Rego file, in Rego v1. Path is for messages, such as policies/gold.rego.
type Module = rego.Module

// DataFile is a YAML or JSON file with one object, merged at the root of data. Below rampart it may hold config only.
type DataFile struct{ Path, Content string }

// Layer is policies that belong together, such as a directory or a bundle.
type Layer struct {
	// Name for messages.
	Name    string
	Modules []Module
	Data    []DataFile
	// Problems are what is wrong with the layer as a whole, such as a bundle that was never had.
	Problems []Problem
}

// Config is what an Engine is made of.
type Config struct {
	// Library is the default library; nil: rego.Modules().
	Library []Module
	// Modules are the repository's own, on top. They may add rules to the four packages that are asked, and use any
	// package outside rampart for their own helpers.
	Modules []Module
	// Data files, merged over the library's defaults in order: objects key by key, anything else replaces what was there.
	Data []DataFile
	// Problems are what is wrong with Modules and Data as a whole, such as a file that is named and not there.
	Problems []Problem
	// Environments are the names of all environments that there are, with which Check compares patterns; nil: they are not known.
	Environments []string
	// Floor is what the bot's own configuration demands. It is judged apart from the repository's modules and data, which can
	// add to it and never change it: a layer's modules see the layers' data alone, and rules of the library that the layers' data
	// configures hold with these parameters, whatever the repository sets.
	Floor []Layer
	// Waivable are the rules that waivers of the repository may waive: names such as rollout.freeze, or acme.* for all whose
	// name begins so. Nil: none.
	Waivable []string
	// Bounds of one query.
	Bounds Bounds
	// Stuck is what the Engines of a process have in common; nil: this one is by itself.
	Stuck *Stuck
}

// Problem is something wrong with a policy or its data. Every problem of an Engine holds what policy can hold; what only Check
// finds holds nothing.
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
