package report

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sentinel is in every text of others in these tests.
const sentinel = "zzevil"

var (
	// live are mentions, references, links, commands and invisible characters, as forges find them in plain text such
	// as a commit message.
	live = regexp.MustCompile(`(?im)@|#|://|\bgh-\d|[!&~$]\d|%\d|^\s*/|\*{3}|\[(skip|ci|no|actions)\b|[\p{Cf}\x00-\x09\x0b-\x1f\x7f-\x9f]`)
	// diagram is what a line of a diagram may be.
	diagram = regexp.MustCompile(`^(flowchart LR|    n\d+\["[^"#;%` + "`" + `<>&]*%?[^"#;%` + "`" + `<>&]*"\]|    n\d+ -->(\|[0-9hms.]+\|)? n\d+|` +
		`    classDef [a-z]+ [a-z0-9 :,-]+|    class [n0-9,]+ [a-z]+)$`)
)

// requireHarmless requires that nothing in a pull request lives but what the body itself is made of.
func requireHarmless(t require.TestingT, title, body string) {
	require.Empty(t, live.FindAllString(body, -1), body)
	require.NotRegexp(t, `[\x00-\x1f\x7f\p{Cf}\[\]<>*`+"`"+`!~$&@#]|://`, title)
	_, fences := requireInert(t, body)
	for _, f := range fences {
		require.Equal(t, "mermaid", f.language)
		require.Regexp(t, `^(flowchart LR|gantt)\n`, f.text)
		if strings.HasPrefix(f.text, "gantt") {
			continue // TestMermaidLines
		}
		for l := range strings.SplitSeq(strings.TrimSuffix(f.text, "\n"), "\n") {
			require.Regexp(t, diagram, l)
		}
	}
}

// TestHostileTexts: what others write is shown, and is nothing but text.
func TestHostileTexts(t *testing.T) {
	for _, part := range []string{evil, "`", "``", "\\", "\\`", "|", "\\|", "@team", "x@team y", "#12", "fixes #12", "Closes: ABC-12", "GH-12", "owner/repo#1", "!12", "&12", "~12",
		"http://e.example", "https://e.example/a_b", "www.e.example", "mail@e.example", "<b>x</b>", "<!-- x -->", "</details>", "<script>alert(1)</script>", "![x](http://e.example/i.png)",
		"[x](javascript:alert(1))", "[ref]: http://e.example", "# x", "\n\n# x\n\n", "\n/merge\n", "/close", "- [x] done", "1. x", "> x", "```", "~~~", "\n```\n", "---", "***", "***NO_CI***",
		"[skip ci]", "[ci skip]", "$x$", "$$x$$", "$12", ":tada:", "[^1]", "[[_TOC_]]", "\"]", "\"] --> n9", "%%{init: {}}%%", "%% x", "end", "click n1 call x()", "&amp;#64;team", "&#64;team", "&quot;",
		"\u202e", "\u2066", "\u200b", "\u00ad", "\ufeff", "\x00", "\x1b[31m", "\r", "\u2028", "\u3164", "a\u0301\u0301\u0301\u0301", "\xff\xfe", "${x}", "{{x}}", "*x*", "__x__"} {
		for _, r := range []ProposalReport{spoiltBy(sentinel + part + sentinel), spoiltBy(part)} {
			requireHarmless(t, r.Title(), r.Body())
		}
	}
	for _, r := range pullRequests() {
		requireHarmless(t, r.Title(), r.Body())
	}
}

// TestHostileTextsOfAllKinds puts pieces that mean something together at random.
func TestHostileTextsOfAllKinds(t *testing.T) {
	piece := rapid.OneOf(rapid.String(), rapid.SampledFrom(strings.Split("` `` ``` \\ | @ # ! [ ] ( ) < > / - * _ ~ $ % & ; : :// www. http \" ' { } = + ^ 1 12 gh- fixes skip ci details summary \n \r \t \u202e", " ")))
	rapid.Check(t, func(t *rapid.T) {
		r := spoiltBy(strings.Join(rapid.SliceOfN(piece, 1, 12).Draw(t, "text"), "") + sentinel)
		requireHarmless(t, r.Title(), r.Body())
	})
}

// TestTame: what was written can still be read.
func TestTame(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "",
		"v2.3.0-1f0c9a2e":                 "v2.3.0-1f0c9a2e",
		"12% of 50 failed, 3 > 2":         "12% of 50 failed, 3 > 2",
		"  two\n lines\t":                 "two lines",
		"ask @ada in #ops":                "ask ＠ada in ＃ops",
		"fixes ABC-7":                     "fixes ABC\u20117",
		"see ABC-7":                       "see ABC-7",
		"fix (until 2026-03-03)":          "fix (until 2026-03-03)",
		"gh-12":                           "gh\u201112",
		"see https://e.example/x":         "see https: //e.example/x",
		"a|b`c`":                          "a¦b'c'",
		"group!5 &3 $1 ~2":                "group！5 ＆3 ＄1 ～2",
		"[skip ci] x [no] [Skip Actions]": "[ skip ci] x [ no] [ Skip Actions]",
		"a\u202eb\u200bc\x1b[0m":          `a\u202eb\u200bc\u001b[0m`,
		"e\u0301\u0301\u0301\u0301":       "e\u0301\u0301",
	} {
		require.Equal(t, want, tame(in))
	}
}
