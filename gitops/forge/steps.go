package forge

import (
	"context"
	"errors"
)

// Steps are what opening and changing a pull request is made of at one forge, for adapters. The order, and what becomes
// of what fails, is the same at all of them.
type Steps struct {
	// Create opens one, without labels and reviewers. Beside its error it says whether that may be since one is open.
	Create func(Opening) (pr PullRequest, exists bool, err error)
	// Ask asks for reviews, and gives what failed. again says that some may have been asked before, or have answered:
	// that stays.
	Ask func(number int64, reviewers, teams []string, again bool) []error
	// Look gives a pull request as it is.
	Look func(number int64) (PullRequest, error)
	// Rewrite changes title and body, where they are not empty.
	Rewrite func(number int64, title, body string) error
	// Label adds labels.
	Label   func(number int64, names []string) error
	Comment func(number int64, text string) error
	// Close closes it. One that is merged: *RefusedError with ReasonConflict.
	Close func(number int64) error
}

// Open is Forge.Open by these steps.
func (s Steps) Open(ctx context.Context, f Forge, o Opening) (PullRequest, error) {
	if err := o.Check(); err != nil {
		return PullRequest{}, err
	}
	pr, exists, err := s.Create(o)
	switch {
	case exists:
		return Refused(ctx, f, o, err)
	case err != nil:
		return pr, err
	}
	if pr, err = Once(ctx, f, pr); err != nil {
		return pr, err
	}
	failed := s.askAndLabel(pr.Number, Change{Reviewers: o.Reviewers, Teams: o.Teams, Label: o.Labels}, false)
	if len(o.Labels)+len(o.Reviewers)+len(o.Teams) > 0 {
		if now, err := s.Look(pr.Number); err != nil {
			failed = append(failed, err)
		} else {
			pr = now
		}
	}
	return pr, partial(pr.Number, failed)
}

// Update is Forge.Update by these steps.
func (s Steps) Update(number int64, c Change) error {
	if err := c.Check(); err != nil {
		return err
	}
	if c.Title != "" || c.Body != "" {
		if err := s.Rewrite(number, c.Title, c.Body); err != nil {
			return err
		}
	}
	failed := s.askAndLabel(number, c, true)
	if c.Comment != "" {
		if err := s.Comment(number, c.Comment); err != nil {
			return err
		}
	}
	if c.Close {
		if err := s.Close(number); err != nil {
			return err
		}
	}
	return partial(number, failed)
}

// askAndLabel sets no labels where reviewers were not asked since the forge is away: where they are, the rest was done.
func (s Steps) askAndLabel(number int64, c Change, again bool) (failed []error) {
	if len(c.Reviewers)+len(c.Teams) > 0 {
		failed = s.Ask(number, c.Reviewers, c.Teams, again)
	}
	if Later(errors.Join(failed...)) {
		return failed
	}
	if len(c.Label) > 0 {
		if err := s.Label(number, c.Label); err != nil {
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
func OneByOne(reviewers, teams []string, ask func(reviewers, teams []string) error) (failed []error) {
	add := func(err error) {
		if err != nil {
			failed = append(failed, err)
		}
	}
	err := ask(reviewers, teams)
	if err == nil || len(reviewers)+len(teams) == 1 {
		add(err)
		return failed
	}
	for _, login := range reviewers {
		add(ask([]string{login}, nil))
	}
	for _, team := range teams {
		add(ask(nil, []string{team}))
	}
	return failed
}
