package sandbox

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// OPA keeps a number as the text that it was written as, and calculates with all its digits: 0x1p-999999999 has a
// billion. So numbers are calculated with that are written in decimals alone, with few digits.

// MaxDigits of a number that is calculated with, and the largest exponent.
const MaxDigits = 1000

// largeNumber is the error of calculating with a number that has more digits than any measurement.
func largeNumber(at *ast.Location, name string) error {
	return &topdown.Error{Code: topdown.BuiltinErr, Location: at,
		Message: fmt.Sprintf("%s: a number with more than %d digits, or one that is not written in decimals", name, MaxDigits)}
}

// SmallNumber reports whether a text is a number in decimals with few digits and no large exponent.
func SmallNumber(s string) bool {
	rest, small := decimal(s)
	return small && rest == ""
}

// decimal reads the number in decimals that a text begins with, such as -1.5e-3: what follows it, and whether it has
// few digits and no large exponent.
func decimal(s string) (rest string, small bool) {
	i := afterSign(s, 0)
	whole := afterDigits(s, i)
	end := whole
	if end < len(s) && s[end] == '.' {
		end = afterDigits(s, end+1)
	}
	if end-i > MaxDigits {
		return s[end:], false
	}
	if end == len(s) || s[end]|0x20 != 'e' {
		return s[end:], true
	}
	from := afterSign(s, end+1)
	to := afterDigits(s, from)
	if to == from {
		return s[end:], true
	}
	exponent, err := strconv.Atoi(s[from:to])
	return s[to:], err == nil && exponent <= MaxDigits
}

func afterSign(s string, i int) int {
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		return i + 1
	}
	return i
}

func afterDigits(s string, i int) int {
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}

// parsesNumbers gives what a builtin that reads numbers from texts has to be given: false is a text that is not to be
// read. Nil: it reads none.
func parsesNumbers(name string) func(s string) bool {
	switch name {
	case "to_number":
		return func(s string) bool {
			rest, small := decimal(s)
			if rest == "" || !small {
				return small
			}
			_, err := strconv.ParseFloat(s, 64) // a text that is not a number is for the builtin to refuse
			return err != nil
		}
	case "units.parse", "units.parse_bytes":
		return func(s string) bool { // which leave out quotes
			_, small := decimal(strings.ReplaceAll(s, `"`, ""))
			return small
		}
	}
	return nil
}
