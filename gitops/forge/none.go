package forge

import "context"

// None is where there is no forge: a proposal is its branch, there is nothing to open, and there are no reviewers
// to ask. It finds no pull request, takes every change and every status without keeping it, and cannot merge.
type None struct{}

var _ Forge = None{}

// Login is empty.
func (None) Login(context.Context) (string, error) { return "", nil }

// List finds nothing.
func (None) List(context.Context, Filter) ([]PullRequest, error) { return nil, nil }

// Get finds nothing: *RefusedError with ReasonNotFound.
func (None) Get(context.Context, int64) (Details, error) {
	return Details{}, &RefusedError{Op: "get a pull request", Where: string(KindNone), Reason: ReasonNotFound,
		Need: "there is no forge"}
}

// Authors knows no accounts.
func (None) Authors(context.Context, string) ([]Person, error) { return make([]Person, 2), nil }

// Open gives back what was asked for, with the number zero.
func (None) Open(_ context.Context, o Opening) (PullRequest, error) {
	return PullRequest{Title: o.Title, Body: o.Body, State: StateOpen, Head: o.Head, Base: o.Base}, nil
}

// Update has nothing to change.
func (None) Update(context.Context, int64, Change) error { return nil }

// Merge is a person's to do: *UnsupportedError.
func (None) Merge(context.Context, int64, Merge) (Merging, error) {
	return "", &UnsupportedError{Forge: KindNone, What: "merging"}
}

// SetStatus has nowhere to set it.
func (None) SetStatus(context.Context, string, Status) error { return nil }

// Statuses finds none.
func (None) Statuses(context.Context, string) ([]Status, error) { return nil, nil }

// Branch knows of none.
func (None) Branch(context.Context, string) (*Branch, error) { return nil, nil }

// Lacks finds nothing that is refused: there is no token.
func (None) Lacks(context.Context, bool) []error { return nil }

// Hooks finds none.
func (None) Hooks(context.Context) ([]Hook, error) { return nil, nil }
