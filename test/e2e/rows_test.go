package e2e

import (
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rampart-gitops/rampart/internal/plan"
)

// Every row of the rules has a say in a test here: bots log the rows of each decision, and a complete run of the tests fails if
// a row was never seen.

// printRows shows which rows were seen in which tests, also of a part of them: go test ./e2e -run TestX -args -rows.
var printRows = flag.Bool("rows", false, "print the rows of the rules that were seen, and the tests they were seen in")

// rows were seen so far, in all tests.
var rows seenRows

// seenRows are rows and the tests that they had a say in.
type seenRows struct {
	mu sync.Mutex
	in map[string]map[string]bool
}

// decided is the line that a bot logs for a decision.
var decided = regexp.MustCompile(`msg=decided .* rows="?\[([^]]*)]`)

// note takes the rows from what a bot logged.
func (s *seenRows) note(t *testing.T, log string) {
	test, _, _ := strings.Cut(t.Name(), "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range decided.FindAllStringSubmatch(log, -1) {
		for _, row := range strings.Fields(m[1]) {
			if s.in == nil {
				s.in = map[string]map[string]bool{}
			}
			if s.in[row] == nil {
				s.in[row] = map[string]bool{}
			}
			s.in[row][test] = true
		}
	}
}

// check says which rows no test of a complete run saw.
func (s *seenRows) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *printRows {
		fmt.Print(s.table())
	}
	if !complete() {
		return nil
	}
	var never []string
	for _, row := range plan.Rows() {
		if s.in[row] == nil {
			never = append(never, row)
		}
	}
	if len(never) > 0 {
		return fmt.Errorf("no test saw a bot decide by these rows of the rules: %s", strings.Join(never, ", "))
	}
	return nil
}

// table is each row with the tests that saw it.
func (s *seenRows) table() string {
	var b strings.Builder
	for _, row := range plan.Rows() {
		fmt.Fprintf(&b, "%-18s %s\n", row, strings.Join(slices.Sorted(maps.Keys(s.in[row])), " "))
	}
	return b.String()
}

// complete reports whether all tests were asked for.
func complete() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return true
}
