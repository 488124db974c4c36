package forge

import (
	"context"
	"errors"
	"fmt"
)

// Steps are what opening and changing a pull request is made of at one forge, for adapters. The order, and what becomes
// of what fails, is the same at all of them.
type Steps struct {
	// Create opens one, without labels and reviewers. Beside its error it says whether that may be since one is open.
	Create func(ctx context.Context, o Opening) (pr PullRequest, exists bool, err error)
	// Ask asks for reviews, and gives what failed.
	Ask func(ctx context.Context, number int64, whom Reviewers) []error
	// Look gives a pull request as it is.
	Look func(ctx context.Context, number int64) (PullRequest, error)
	// Rewrite changes title and body, where they are not empty.
	Rewrite func(ctx context.Context, number int64, title, body string) error
	// Label adds labels.
	Label   func(ctx context.Context, number int64, names []string) error
	Comment func(ctx context.Context, number int64, text string) error
	// Close closes it. One that is merged: *RefusedError with ReasonConflict.
	Close func(ctx context.Context, number int64) error
}

// Reviewers are those to ask for a review, as in an Opening.
type Reviewers struct {
	Logins, Teams []string
	// Again says that some may have been asked before, or have answered: that stays.
	Again bool
}

// Open is Forge.Open by these steps.
func (s Steps) Open(ctx context.Context, f Forge, o Opening) (PullRequest, error) {
	if err := o.Check(); err != nil {
		return PullRequest{}, err
	}
	pr, exists, err := s.Create(ctx, o)
	switch {
	case exists:
		return existing(ctx, f, o, err)
	case err != nil:
		return pr, err
	}
	if pr, err = once(ctx, f, pr); err != nil {
		return pr, err
	}
	failed := s.askAndLabel(ctx, pr.Number, Reviewers{Logins: o.Reviewers, Teams: o.Teams}, o.Labels)
	if len(o.Labels)+len(o.Reviewers)+len(o.Teams) > 0 {
		if now, err := s.Look(ctx, pr.Number); err != nil {
			failed = append(failed, err)
		} else {
			pr = now
		}
	}
	return pr, partial(pr.Number, failed)
}

// Update is Forge.Update by these steps.
func (s Steps) Update(ctx context.Context, number int64, c Change) error {
	if err := c.Check(); err != nil {
		return err
	}
	if c.Title != "" || c.Body != "" {
		if err := s.Rewrite(ctx, number, c.Title, c.Body); err != nil {
			return err
		}
	}
	failed := s.askAndLabel(ctx, number, Reviewers{Logins: c.Reviewers, Teams: c.Teams, Again: true}, c.Label)
	if c.Comment != "" {
		if err := s.Comment(ctx, number, c.Comment); err != nil {
			return err
		}
	}
	if c.Close {
		if err := s.Close(ctx, number); err != nil {
			return err
		}
	}
	return partial(number, failed)
}

// askAndLabel sets no labels where reviewers were not asked since the forge is away: where they are, the rest was done.
func (s Steps) askAndLabel(ctx context.Context, number int64, whom Reviewers, labels []string) (failed []error) {
	if len(whom.Logins)+len(whom.Teams) > 0 {
		failed = s.Ask(ctx, number, whom)
	}
	if Later(errors.Join(failed...)) {
		return failed
	}
	if len(labels) > 0 {
		if err := s.Label(ctx, number, labels); err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

func partial(number int64, failed []error) error {
	if len(failed) == 0 {
		return nil
	}
	return &PartialError{Number: number, Failed: failed}
}

// OneByOne asks for all reviews at once, or else for each by itself, since one that cannot be asked refuses all. It
// gives what failed.
func OneByOne(whom Reviewers, ask func(Reviewers) error) (failed []error) {
	add := func(err error) {
		if err != nil {
			failed = append(failed, err)
		}
	}
	err := ask(whom)
	if err == nil || len(whom.Logins)+len(whom.Teams) == 1 {
		add(err)
		return failed
	}
	for _, login := range whom.Logins {
		add(ask(Reviewers{Logins: []string{login}}))
	}
	for _, team := range whom.Teams {
		add(ask(Reviewers{Teams: []string{team}}))
	}
	return failed
}

// standing is the oldest open pull request from a head to a base. Number zero: there is none.
func standing(ctx context.Context, f Forge, head, base string) (PullRequest, error) {
	open, err := f.List(ctx, Filter{Head: head, Base: base, Open: true})
	if err != nil || len(open) == 0 {
		return PullRequest{}, err
	}
	return open[len(open)-1], nil
}

// existing tells what to make of a pull request that a forge did not open because there is one. It gives that one and
// an *ExistsError; or what the forge said, if it is gone by now.
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

// once is for a pull request that was just opened. Forges look for another one before they open one, and two may look
// at the same moment. If there is an older one, this one is closed again, and the older one returned with an
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
