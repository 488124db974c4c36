package parse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// Cut makes a policy's text fit to be shown: valid UTF-8, and not longer than most bytes.
func Cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	const more = "…"
	return strings.ToValidUTF8(s[:most-len(more)], "") + more
}

// Instead says what may have been meant: the nearest name, or else all there are.
func Instead(name string, names []string) string {
	if near := v1alpha1.Closest(name, names); near != "" {
		return fmt.Sprintf(" (did you mean %s?)", near)
	}
	if len(names) == 0 || len(names) > MaxOffered {
		return ""
	}
	return fmt.Sprintf(" (there is %s)", strings.Join(slices.Sorted(slices.Values(names)), ", "))
}

// MaxOffered names are listed in a message.
const MaxOffered = 40
