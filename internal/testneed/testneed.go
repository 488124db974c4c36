// Package testneed says which tests run where: a machine with Go and git alone skips those for which something is not installed, make test
// skips long ones, and CI skips none.
package testneed

import (
	"errors"
	"fmt"
	"net"
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

// Long skips a test that takes long under -short, with which make test runs the tests. make test-all runs it, and so does CI.
func Long(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("a long test: make test-all runs it")
	}
}

// Plain skips a test under the race detector: one that measures time and memory, which that multiplies, or that computes ten times as long for it
// where there is no race to find, in hundreds of processes of the test binary or in one goroutine. CI runs it in make test-long.
func Plain(tb testing.TB) {
	tb.Helper()
	if underRace {
		tb.Skip("it runs without the race detector alone: make test-long")
	}
}

// FreePort gives a TCP port on 127.0.0.1 at which nothing listens now, for a program that takes no port of its own choice.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.Join(fmt.Errorf("find a free port: %v is no TCP address", l.Addr()), l.Close())
	}
	return address.Port, l.Close()
}

// Repeats is how often a test repeats something with other random numbers: all times, under -short a fifth of that and at least once.
func Repeats(all int) int {
	if testing.Short() {
		return max(1, all/5)
	}
	return all
}
