package report

import (
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"
)

// fence is a block of code in Markdown.
type fence struct{ language, text string }

var (
	opening  = regexp.MustCompile("^(`{3,})([a-z]*)$")
	codeSpan = regexp.MustCompile("`([^`|]+)`")
	// ownWords is what a line may be once its code spans are gone: text of our own, rows of tables, headings and items.
	ownWords = regexp.MustCompile(`^(- |#{2,3} )?[A-Za-z0-9 .,:;()%|*→-]*$`)
	// ownHTML is the only HTML there is.
	ownHTML = regexp.MustCompile(`^(<details>|<summary>[A-Za-z0-9 ,:]+</summary>|</details>)$`)
)

// requireInert requires that all that others wrote in Markdown is code, and gives that code. That Markdown parsers see
// it this way is what the tests in test/forge/report show.
func requireInert(t require.TestingT, body string) (spans []string, fences []fence) {
	var in *fence
	end := ""
	for line := range strings.SplitSeq(body, "\n") {
		open := opening.FindStringSubmatch(line)
		switch {
		case in != nil && line == end:
			fences, in = append(fences, *in), nil
		case in != nil:
			in.text += line + "\n"
			require.False(t, strings.HasPrefix(strings.TrimLeft(line, " "), end), line)
		case open != nil:
			in, end = &fence{language: open[2]}, open[1]
		case ownHTML.MatchString(line):
		default:
			for _, span := range codeSpan.FindAllStringSubmatch(line, -1) {
				spans = append(spans, span[1])
			}
			require.NotContains(t, line, "``")
			words := codeSpan.ReplaceAllString(line, "")
			require.Regexp(t, ownWords, words, "in\n%s", body)
			require.NotContains(t, strings.ToLower(words), sentinel)
		}
	}
	require.Nil(t, in, "a block of code does not end")
	return spans, fences
}
