package source

import (
	"errors"

	"github.com/rampart-gitops/rampart/internal/confined"
)

// Serve builds the folders that come from a Process until there are no more. It is all that its process does. Errors:
// the process can't be bounded.
func Serve() error { return confined.Serve(service{}, DefaultMemory) }

// service is what a Process calls.
type service struct{}

// Build builds a folder.
func (service) Build(in Input, out *Answer) error {
	var err error
	if out.Output, err = Build(in); err != nil && !errors.As(err, &out.Error) {
		out.Error = &Error{File: in.Marker, Message: oneLine(err.Error())}
	}
	return nil
}
