package parse

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// Cut makes a policy's text fit to be shown: valid UTF-8, and not longer than most bytes.
func Cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	end := most - len("…")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// Nearest is the name that is most like a misspelt one, "" if none is near enough: a third of its letters may differ.
func Nearest(name string, names []string) string {
	best, distance := "", min(max(1, len(name)/3), len(name)-1)+1
	for _, n := range slices.Sorted(slices.Values(names)) {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(n)); d < distance {
			best, distance = n, d
		}
	}
	return best
}

// Instead says what may have been meant: the nearest name, or else all there are.
func Instead(name string, names []string) string {
	if near := Nearest(name, names); near != "" {
		return fmt.Sprintf(" (did you mean %s?)", near)
	}
	if len(names) == 0 || len(names) > MaxOffered {
		return ""
	}
	return fmt.Sprintf(" (there is %s)", strings.Join(slices.Sorted(slices.Values(names)), ", "))
}

// MaxOffered names are listed in a message.
const MaxOffered = 40
