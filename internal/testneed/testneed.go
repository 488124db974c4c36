// Package testneed says what becomes of a test for which something is not installed: a machine with Go and git alone runs the
// others, and CI skips none.
package testneed

import (
	"os"
	"testing"
)

// all is the variable that says that no test may be skipped: CI sets it.
const all = "RAMPART_TEST_ALL"

// Missing skips the test for what is missing, in words; where the variable RAMPART_TEST_ALL is set, the test fails.
func Missing(tb testing.TB, what string) {
	tb.Helper()
	if os.Getenv(all) != "" {
		tb.Fatal(what)
	}
	tb.Skip(what)
}
