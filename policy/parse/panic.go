package parse

import "fmt"

// Panicked is a panic of OPA's, which has no place.
type Panicked string

// Error is the panic's text.
func (p Panicked) Error() string { return string(p) }

// Recovered turns a panic into an error.
func Recovered(err *error) {
	if r := recover(); r != nil {
		*err = Panicked(fmt.Sprintf("panic: %v", r))
	}
}
