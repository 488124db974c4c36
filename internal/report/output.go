package report

import (
	"fmt"
	"strings"
)

// OutputReport is a commit of the bot that the output's branch does not take.
type OutputReport struct {
	// Environment and Branch by their names.
	Environment, Branch string
	// Message of the commit.
	Message string
}

// Title is that of the pull request.
func (r OutputReport) Title() string {
	return cutTitle(fmt.Sprintf("rampart(%s): commit to %s", inTitle(r.Environment), inTitle(r.Branch)))
}

// Body says what a merge does, and what is in the commit, as ProposalReport's does.
func (r OutputReport) Body() string {
	var b strings.Builder
	fmt.Fprintf(&b, "A rule of the branch %s keeps the bot from pushing to it, so what it would commit for %s is "+
		"proposed here.\n\n", quotedName(r.Branch),
		quotedName(r.Environment))
	b.WriteString("**If merged**, the bot reads the branch and decides again. Only then does it raise the traffic " +
		"that this commit records.\n\n" +
		"**To reject**, close it: the rollouts that are in it stay where they are until there is something else " +
		"to commit. " +
		"The bot lowers traffic without asking, also while this is open.\n\n")
	var lines strings.Builder
	for line := range strings.Lines(r.Message) {
		if line = strings.TrimSpace(line); line != "" {
			lines.WriteString("- " + quoted(line, messageRunes) + "\n")
		}
	}
	b.WriteString(foldedText("The commit", whole(lines.String(), maxSection)))
	return b.String()
}
