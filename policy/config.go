package policy

import (
	"slices"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// Bounds of what is read and shown.
const (
	// maxRead is how many findings of a rule set are read; more are an error.
	maxRead     = 1000
	maxFindings = 100
	maxEvidence = 4 << 10
)

// Layer is policies that belong together, such as a directory or a bundle.
type Layer struct {
	// Name for messages.
	Name    string
	Modules []parse.Module
	Data    []parse.DataFile
	// Problems are what is wrong with the layer as a whole, such as a bundle that was never had.
	Problems []parse.Problem
}

// Config is what an Engine is made of.
type Config struct {
	// Library is the default library; nil: rego.Modules().
	Library []parse.Module
	// Modules are the repository's own, on top. They may add rules to the four packages that are asked, and use any
	// package outside rampart for their own helpers.
	Modules []parse.Module
	// Data files, merged over the library's defaults in order: objects key by key, anything else replaces what was
	// there.
	Data []parse.DataFile
	// Problems are what is wrong with Modules and Data as a whole, such as a file that is named and not there.
	Problems []parse.Problem
	// Environments are the names of all environments that there are, with which Check compares patterns; nil: they are
	// not known.
	Environments []string
	// Floor is what the bot's own configuration demands. It is judged apart from the repository's modules and data,
	// which can add to it and never change it: a layer's modules see the layers' data alone, and rules of the library
	// that the layers' data configures hold with these parameters, whatever the repository sets.
	Floor []Layer
	// Waivable are the rules that waivers of the repository may waive: names such as rollout.freeze, or acme.* for all
	// whose name begins so. Nil: none.
	Waivable []string
	// Bounds of one query.
	Bounds Bounds
	// Overrun is told of an evaluation of untrusted policies that does not end in its time, and could not be stopped:
	// the finding says which. The evaluation goes on, and its caller waits for ever. Nil: nothing is called.
	Overrun func(rollout.Finding)
}

// Foreign are the modules beside the library's: those of the repository, then those of the floor. The library's rules
// end soon, whatever data and input they are given; these may not.
func (c Config) Foreign() []parse.Module {
	out := slices.Clip(c.Modules)
	for _, l := range c.Floor {
		out = append(out, l.Modules...)
	}
	return out
}
