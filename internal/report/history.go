package report

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"
)

// EventKind is what an event of a rollout's story is.
type EventKind string

// The kinds of events.
const (
	CommitEvent   EventKind = "Commit"   // a commit of the bot or of a person touched the spec or the record
	DecisionEvent EventKind = "Decision" // a decision that was recorded
)

// Event is one entry of a rollout's story.
type Event struct {
	At   time.Time `json:"at"`
	Kind EventKind `json:"kind"`
	// ByBot says that a commit is the bot's, which a decision led to.
	ByBot bool `json:"-"`
	// Who: the author of a commit, or the bot that decided.
	Who string `json:"who"`
	// What happened, one line.
	What string `json:"what"`
	// Why, a line each: reasons, rules that fired, waivers that were applied.
	Why []string `json:"why,omitempty"`
	// Commit hash, or ID of the decision.
	Commit   string `json:"commit,omitempty"`
	Decision string `json:"decision,omitempty"`
	// Paths that a commit touched, of the spec and the record.
	Paths []string `json:"paths,omitempty"`
	// Verdicts of a decision by action, and the state that it left.
	Verdicts []EventVerdict `json:"verdicts,omitempty"`
	State    string         `json:"state,omitempty"`
	// PolicyDigest of the policies that decided.
	PolicyDigest string `json:"policyDigest,omitempty"`
}

// EventVerdict is what policy said of an action.
type EventVerdict struct {
	Action string `json:"action"`
	Effect string `json:"effect"`
	// Rules that fired, and Waived those of them whose effect a waiver took away, by its name.
	Rules  []string          `json:"rules,omitempty"`
	Waived map[string]string `json:"waived,omitempty"`
}

// History is the story of one worker deployment's rollouts.
type History struct {
	Environment string `json:"environment"`
	Name        string `json:"name"`
	// Events, the newest first.
	Events []Event `json:"events"`
	// Recorded says whether decisions were found to be recorded.
	Recorded bool `json:"recorded"`
}

// SortEvents puts the newest first. Commits know their second only: of one second, those of the bot are newer than
// decisions, which led to them, and those of persons are older.
func SortEvents(events []Event) {
	rank := func(e Event) int {
		switch {
		case e.Kind == CommitEvent && e.ByBot:
			return 0
		case e.Kind == CommitEvent:
			return 2
		}
		return 1
	}
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(b.At.Truncate(time.Second).Compare(a.At.Truncate(time.Second)), rank(a)-rank(b),
			b.At.Compare(a.At))
	})
}

// WriteText prints the story as a table, with reasons below what they are about.
func (h History) WriteText(w io.Writer, style Style) error {
	rows := [][]string{{"WHEN", "WHO", "REF", "WHAT"}}
	for _, e := range h.Events {
		rows = append(rows, []string{e.At.UTC().Format(time.RFC3339), cut(oneLine(e.Who), 24), e.ref(),
			cut(oneLine(e.What), 160)})
		for _, why := range e.Why {
			rows = append(rows, []string{"", "", "", "  " + cut(oneLine(why), 200)})
		}
	}
	head, rest, _ := strings.Cut(trimLines(aligned(rows)), "\n")
	_, err := io.WriteString(w, style.paint(bold, head)+"\n"+rest)
	return err
}

// ref names the commit, or says that it is a decision.
func (e Event) ref() string {
	if e.Kind == CommitEvent {
		return oneLine(e.Commit[:min(len(e.Commit), 9)])
	}
	return "decision"
}
