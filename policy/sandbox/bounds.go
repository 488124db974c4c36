package sandbox

import (
	"cmp"
	"time"
)

// Bounds of one query, each 0 for its default. What goes beyond is ended, and held.
type Bounds struct {
	// Timeout of real time.
	Timeout time.Duration
	// Steps of evaluation: expressions that are looked at. The default library takes some hundred.
	Steps int
	// Memory in bytes, roughly, that results of builtins take.
	Memory int64
	// Compile is how long reading and compiling the modules may take, of real time.
	Compile time.Duration
}

// The default bounds.
const (
	DefaultTimeout = time.Second
	DefaultSteps   = 200_000
	DefaultMemory  = 64 << 20
	DefaultCompile = 10 * time.Second
)

// OrDefault gives the bounds with the defaults of those that are 0.
func (b Bounds) OrDefault() Bounds {
	return Bounds{Timeout: cmp.Or(b.Timeout, DefaultTimeout), Steps: cmp.Or(b.Steps, DefaultSteps), Memory: cmp.Or(b.Memory, DefaultMemory),
		Compile: cmp.Or(b.Compile, DefaultCompile)}
}
