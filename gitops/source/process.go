package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rampart-gitops/rampart/internal/confined"
)

// Bounds of one build in a Process.
const (
	DefaultTime   = 5 * time.Second
	DefaultMemory = 384 << 20
)

// Process builds folders in a process of its own, which Serve is called in. It serves one build after the other.
type Process struct {
	*confined.Process
	// Time is how long one build may take; zero: DefaultTime.
	Time time.Duration
}

// Answer is what the process says of one folder.
type Answer struct {
	Output Output
	Error  *Error
}

// Build builds a folder. Errors: *Error; another where no process can be started.
func (p *Process) Build(in Input) (Output, error) {
	most := p.Time
	if most == 0 {
		most = DefaultTime
	}
	var got Answer
	err := p.Call(context.Background(), most, "Build", in, &got)
	var ended *confined.EndedError
	switch {
	case err == nil && got.Error != nil:
		return Output{}, got.Error
	case err == nil:
		return got.Output, nil
	case !errors.As(err, &ended):
		return Output{}, fmt.Errorf("build %s: %w", in.Marker, err)
	case ended.Slow:
		return Output{}, &Error{File: in.Marker, Bounds: true,
			Message: fmt.Sprintf("cannot be built: it takes longer than %v: build less, and nothing that never ends",
				most)}
	}
	said := ""
	if ended.Said != "" {
		said = " (" + oneLine(ended.Said) + ")"
	}
	return Output{}, &Error{File: in.Marker, Bounds: true, Message: fmt.Sprintf(
		"cannot be built: the process that builds it ended, most likely because it needed more than %d MiB of "+
			"memory%s: build less", DefaultMemory>>20, said)}
}
