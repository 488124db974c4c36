package rollout

import (
	"math"
	"strconv"
	"strings"
)

// Percent prints a percentage as a person writes it, such as 12.5%.
func Percent(p float64) string { return strconv.FormatFloat(p, 'f', -1, 64) + "%" }

// AsWritten turns the server's float32 into the number that a person wrote: 0.1, not 0.10000000149.
func AsWritten(p float32) float64 {
	f, err := strconv.ParseFloat(strconv.FormatFloat(float64(p), 'g', -1, 32), 64)
	if err != nil {
		return float64(p)
	}
	return f
}

// Rate prints what part of a whole is in percent, to two digits or to the whole percent, such as 0.4% or 12%. It is 0%
// and 100% only where that is exact.
func Rate(part, of int64) string {
	switch {
	case part == 0 || of == 0:
		return "0%"
	case part == of:
		return "100%"
	}
	p := 100 * float64(part) / float64(of)
	digits := max(0, 1-int(math.Floor(math.Log10(p))))
	if p > 99 {
		digits, p = 1, math.Min(p, 99.9)
	}
	text := strconv.FormatFloat(p, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + "%"
}

// RateOf is a rate and what it is of, such as 0.4% (12 of 2 981).
func RateOf(part, of int64) string {
	return Rate(part, of) + " (" + Grouped(part) + " of " + Grouped(of) + ")"
}

// Grouped prints a number with its digits in groups of three, such as 2 981.
func Grouped(n int64) string {
	s, sign := strconv.FormatInt(n, 10), ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return sign + s
}
