package forge

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Takes reports whether the filter asks for a pull request, whatever its state is, for adapters.
func (f Filter) Takes(pr PullRequest) bool {
	return (f.Head == "" || pr.Head == f.Head) && (f.Base == "" || pr.Base == f.Base) && !f.Passed(pr.Updated)
}

// Passed reports whether what changed last at a time is too old for the filter, for adapters. In a list by that time
// all that follows is, too.
func (f Filter) Passed(updated time.Time) bool {
	return !f.Since.IsZero() && !updated.IsZero() && updated.Before(f.Since.Truncate(time.Second))
}

// Newest sorts pull requests, the newest first, for adapters. Each is there once: what is opened while pages are read
// moves others to the next page.
func Newest(found []PullRequest) []PullRequest {
	slices.SortStableFunc(found, func(a, b PullRequest) int { return cmp.Compare(b.Number, a.Number) })
	return slices.CompactFunc(found, func(a, b PullRequest) bool { return a.Number == b.Number })
}

// ByLogin sorts approvals by who gave them, for adapters.
func ByLogin(given []Approval) []Approval {
	slices.SortFunc(given, func(a, b Approval) int { return cmp.Compare(a.By.Login, b.By.Login) })
	return given
}

// WithoutMark is the title of a draft without what it begins with, for adapters.
func WithoutMark(title string, marks ...string) string {
	for _, mark := range marks {
		if len(title) >= len(mark) && strings.EqualFold(title[:len(mark)], mark) {
			return strings.TrimSpace(title[len(mark):])
		}
	}
	return title
}

// Moment is a time in UTC, for adapters; nil is the zero time.
func Moment(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
