package parity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// What Rampart does in a scenario that no test of its own can show.
const (
	// NoCounterpart: there is nothing in Rampart that the scenario could be about.
	NoCounterpart = "no counterpart"
	// Open: Rampart does not do this yet.
	Open = "open"
)

// Case is one scenario of the in-cluster controller.
type Case struct {
	// Scenario and what the controller does in it, in words.
	Scenario, Controller string
	// Got gives what Rampart does, as text. Nil: Tests show it, or nothing does, and Want is NoCounterpart or Open.
	Got func(*testing.T) string
	// Want is what Rampart does: with Got, word for word.
	Want string
	// Tests show what Want says: "<folder> <name>", such as "test/e2e TestManual". They have to exist.
	Tests []string
	// Why says why Rampart differs. Empty: it does the same.
	Why string
}

// check gives what is wrong with how a case is written, "" if nothing is.
func (c Case) check() string {
	absent := c.Want == NoCounterpart || c.Want == Open
	switch {
	case c.Scenario == "" || c.Controller == "" || c.Want == "":
		return "scenario, controller and want are needed"
	case absent && (c.Got != nil || len(c.Tests) > 0):
		return "what is absent cannot be shown"
	case absent && c.Why == "":
		return "a reason is needed for what is absent"
	case !absent && c.Got == nil && len(c.Tests) == 0:
		return "nothing shows it"
	}
	return ""
}

// Compare runs the cases of a section and compares its table with the page's, or writes it with -update.
func Compare(t *testing.T, section string, cases []Case) {
	t.Helper()
	root := rootOf(t)
	seen := map[string]bool{}
	for _, c := range cases {
		t.Run(c.Scenario, func(t *testing.T) {
			require.Empty(t, c.check())
			require.False(t, seen[c.Scenario], "another case has the same name")
			seen[c.Scenario] = true
			for _, name := range c.Tests {
				require.NoError(t, exists(root, name))
			}
			if c.Got != nil {
				require.Empty(t, cmp.Diff(c.Want, c.Got(t)))
			}
		})
	}
	keep(t, section, table(cases))
}

// table is the cases as they stand in the page.
func table(cases []Case) string {
	var b strings.Builder
	b.WriteString("| scenario | controller | Rampart | why different |\n| --- | --- | --- | --- |\n")
	for _, c := range cases {
		why, does := c.Why, cell(c.Want)
		if why == "" {
			why = "same"
		}
		if c.Got != nil {
			does = "`" + does + "`"
		}
		if len(c.Tests) > 0 {
			does += " (" + links(c.Tests) + ")"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", cell(c.Scenario), cell(c.Controller), does, cell(why))
	}
	return b.String()
}

// links are tests as the page names them.
func links(tests []string) string {
	var out []string
	for _, name := range tests {
		folder, test, _ := strings.Cut(name, " ")
		out = append(out, fmt.Sprintf("`%s` in `%s`", test, folder))
	}
	return strings.Join(out, ", ")
}

func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", "<br>").Replace(s)
}
