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

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/plan"
)

// Every row of the rules has a say in a test here: bots log the rows of each decision, and a complete run of the tests
// fails if a row was never seen.

// printRows shows which rows were seen in which tests, also of a part of them: go test ./e2e -run TestX -rows.
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
	if *printRows {
		fmt.Print(s.table())
	}
	if never := s.never(); complete() && len(never) > 0 {
		return fmt.Errorf("no test saw a bot decide by these rows of the rules: %s", strings.Join(never, ", "))
	}
	return nil
}

// never are the rows that were not seen.
func (s *seenRows) never() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(plan.Rows(), func(row string) bool { return s.in[row] != nil })
}

// table is each row with the tests that saw it.
func (s *seenRows) table() string {
	s.mu.Lock()
	defer s.mu.Unlock()
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
	return !testing.Short()
}

func TestRowsAreSeen(t *testing.T) {
	var s seenRows
	require.Equal(t, plan.Rows(), s.never())
	s.note(t, `time=2026-03-01T12:00:00Z level=DEBUG msg=decided deployment=shop/checkout row=complete rows="[complete continue]" reason=RolloutComplete
time=2026-03-01T12:00:00Z level=INFO msg=committed rows=[drift]
time=2026-03-01T12:00:01Z level=DEBUG msg=decided deployment=shop/checkout row=create rows=[create] reason=WaitingForPollers
`)
	never := s.never()
	require.Len(t, never, len(plan.Rows())-3)
	for _, row := range []string{"complete", "continue", "create"} {
		require.NotContains(t, never, row)
		require.Regexp(t, "(?m)^"+row+" +TestRowsAreSeen$", s.table())
	}
}
