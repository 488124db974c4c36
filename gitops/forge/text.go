package forge

import (
	"strings"

	"github.com/rampart-gitops/rampart/internal/outgoing"
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

// Description is one line for a commit status that every forge takes, for adapters.
func Description(text string) string {
	const ellipsis = "…"
	return outgoing.OneLine(text, MaxDescription-len(ellipsis))
}
