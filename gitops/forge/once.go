package forge

import (
	"context"
	"errors"
	"fmt"
)

// standing is the oldest open pull request from a head to a base. Number zero: there is none.
func standing(ctx context.Context, f Forge, head, base string) (PullRequest, error) {
	open, err := f.List(ctx, Filter{Head: head, Base: base, Open: true})
	if err != nil || len(open) == 0 {
		return PullRequest{}, err
	}
	return open[len(open)-1], nil
}

// existing tells what to make of a pull request that a forge did not open because there is one: that one and an
// *ExistsError; or what the forge said, if it is gone by now.
func existing(ctx context.Context, f Forge, o Opening, said error) (PullRequest, error) {
	pr, err := standing(ctx, f, o.Head, o.Base)
	switch {
	case err != nil:
		return PullRequest{}, err
	case pr.Number == 0:
		return PullRequest{}, said
	}
	return pr, &ExistsError{PullRequest: pr}
}

// once is for a pull request that was just opened: forges look for another one before they open one, and two
// may look at the same moment. If there is an older one, this one is closed again, and the older one returned with an
// *ExistsError.
func once(ctx context.Context, f Forge, pr PullRequest) (PullRequest, error) {
	first, err := standing(ctx, f, pr.Head, pr.Base)
	if err != nil {
		return pr, &PartialError{Number: pr.Number, Failed: []error{fmt.Errorf("look for another one: %w", err)}}
	}
	if first.Number == 0 || first.Number >= pr.Number {
		return pr, nil
	}
	exists := &ExistsError{PullRequest: first}
	why := "This was opened at the same moment as " + first.URL + ", which stays open."
	if err := f.Update(ctx, pr.Number, Change{Close: true, Comment: why}); err != nil {
		return first, errors.Join(exists, err)
	}
	return first, exists
}
