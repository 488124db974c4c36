// Package testneed says which tests run where. A machine with Go and git alone skips those for which something is not
// installed, make test skips long ones, and CI skips none.
package testneed

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync/atomic"
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

// Main runs the tests of a binary, and exits. Where serve is not nil, the binary is the process that a test started: it
// serves in place of that.
func Main(m *testing.M, serve func() error) {
	if serve == nil {
		os.Exit(m.Run())
	}
	if err := serve(); err != nil {
		panic(err)
	}
}

// Long skips a test that takes long under -short, with which make test runs the tests. make test-all runs it, and so
// does CI.
func Long(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("a long test: make test-all runs it")
	}
}

// Plain skips a test under the race detector, which multiplies time and memory. It is for tests that measure them, and
// for long computations where there is no race to find: in one goroutine, or in hundreds of processes of the test
// binary. CI runs these tests in make test-long.
func Plain(tb testing.TB) {
	tb.Helper()
	if underRace {
		tb.Skip("it runs without the race detector alone: make test-long")
	}
}

// Ports below those that systems give to connections that leave (32768 and later on Linux). One of these would take the
// port between finding it and listening at it.
const (
	firstPort = 10_000
	ports     = 22_000
)

var (
	start = rand.Uint32N(ports) // another place for each process
	given atomic.Uint32
)

// FreePort gives a TCP port on 127.0.0.1 at which nothing listens now, for a program that takes no port of its own
// choice. A process gets each port once, until it had them all.
func FreePort() (int, error) {
	var err error
	for range ports {
		port := firstPort + int((start+given.Add(1))%ports)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}

// Repeats is how often a test repeats something with other random numbers: all times, under -short a fifth of that and
// at least once.
func Repeats(all int) int {
	if testing.Short() {
		return max(1, all/5)
	}
	return all
}
