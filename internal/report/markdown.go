package report

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Markdown that forges show. What others wrote (names, messages, reasons, values) stands in it as code and nowhere
// else: forges look for mentions, references, links and HTML in text, and not in code. Since some of them make a commit
// message of it, where there is no code, it is made harmless there as well.

// Lengths of quoted text.
const (
	nameRunes    = 120 // a name, a build ID
	messageRunes = 300 // a sentence of somebody
	readRunes    = 4000
)

// quoted is text of others as code, one line of at most n runes.
func quoted(s string, n int) string { return "`" + dash(cut(tame(s), n)) + "`" }

func quotedName(s string) string { return "`" + tameName(s) + "`" }

// tameName is a name within code.
func tameName(s string) string { return dash(cut(tame(s), nameRunes)) }

// quotedBuild is a build ID as code, or the workers that have none.
func quotedBuild(id string) string {
	if id == "" {
		return unversioned(id)
	}
	return quotedName(id)
}

// inCode are signs that end code or a cell of a table.
var inCode = strings.NewReplacer("`", "'", "|", "¦")

// tame makes text of others one line with what cannot be seen escaped. The line cannot end code or a cell of a table,
// and nothing in it is a mention, a reference, a link, or a command of a forge. A sign is replaced by one that looks
// like it.
func tame(s string) string {
	return printable.Inert(inCode.Replace(visible(cut(s, readRunes))))
}

// visible is oneLine without what piles up: more than two marks on a letter.
func visible(s string) string {
	marks := 0
	return strings.Map(func(r rune) rune {
		switch {
		case !unicode.Is(unicode.M, r):
			marks = 0
		default:
			if marks++; marks > 2 {
				return -1
			}
		}
		return r
	}, oneLine(strings.ToValidUTF8(s, "")))
}

// grid is a Markdown table of cells that are Markdown.
type grid struct {
	b    strings.Builder
	rows int
}

func newGrid(head ...string) *grid {
	t := &grid{}
	t.line(head)
	t.b.WriteString("|" + strings.Repeat(" --- |", len(head)) + "\n")
	return t
}

func (t *grid) row(cells ...string) {
	t.rows++
	t.line(cells)
}

func (t *grid) line(cells []string) { t.b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }

// maxRows is how many rows of a list are shown. The others are counted.
const maxRows = 40

func leftOut(n int) string {
	if n <= maxRows {
		return ""
	}
	return fmt.Sprintf("\nand %d more\n", n-maxRows)
}

// foldedText is Markdown behind a line of our own words.
func foldedText(summary, text string) string {
	return "<details>\n<summary>" + summary + "</summary>\n\n" + strings.TrimSpace(text) + "\n\n</details>\n"
}

func mermaidFence(text string) string { return "```mermaid\n" + strings.TrimSpace(text) + "\n```\n" }

// countOf is a number and what it counts, such as "1 rule" and "2 981 workflows".
func countOf(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return rollout.Grouped(n) + " " + what
}
