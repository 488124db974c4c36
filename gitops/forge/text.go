package forge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/internal/httpclient"
)

// Check looks whether every forge takes this, for adapters. Errors: *TextError.
func (o Opening) Check() error {
	if o.Title == "" {
		return &TextError{What: "title", Most: MaxTitle}
	}
	return checkTexts(o.Title, o.Body)
}

// Check looks whether every forge takes this, for adapters. Errors: *TextError.
func (c Change) Check() error { return checkTexts(c.Title, c.Body, c.Comment) }

func checkTexts(title string, bodies ...string) error {
	if strings.ContainsAny(title, "\r\n") || title != "" && strings.TrimSpace(title) == "" {
		return &TextError{What: "title", Most: MaxTitle}
	}
	if len(title) > MaxTitle {
		return &TextError{What: "title", Most: MaxTitle, Size: len(title)}
	}
	for _, body := range bodies {
		if len(body) > MaxBody {
			return &TextError{What: "body", Most: MaxBody, Size: len(body)}
		}
	}
	return nil
}

// SortedStatuses sorts statuses by context, for adapters. It leaves out those whose state is empty: an adapter did
// not know it.
func SortedStatuses(all []Status) []Status {
	all = slices.DeleteFunc(all, func(s Status) bool { return s.State == "" })
	slices.SortFunc(all, func(a, b Status) int { return cmp.Compare(a.Context, b.Context) })
	return all
}

// TooManyStatuses says that a commit has more statuses than are read, for adapters.
func TooManyStatuses(op, where string, most int) error {
	return &RefusedError{Op: op, Where: where, Reason: ReasonReply,
		Said: fmt.Sprintf("the commit has more than %d statuses", most)}
}

// Description is one line for a commit status that every forge takes, for adapters.
func Description(text string) string {
	const ellipsis = "…"
	return httpclient.OneLine(text, MaxDescription-len(ellipsis))
}
