package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const (
	// maxFirst is how many words the first sentence of a doc comment may have.
	maxFirst = 25
	// maxColumns is how many columns a line of a document, of a policy, or of prose in a comment may have, with tabs of
	// four.
	maxColumns = 120
)

var (
	// riddles are phrases that leave open who does what. "There is no record" and "is no longer" say it.
	riddles   = regexp.MustCompile(`(?i)\b(whoever|nobody|of which|what is not|by and by)\b|(\w+ )?\b(is no|is none|are none)\b( \w+)?`)
	plainNone = regexp.MustCompile(`(?i)^there (is|are) |^(\w+ )?is no (longer|more)$`)
	prose     = regexp.MustCompile(`^\t*// \S`)
	marker    = regexp.MustCompile(`^\t*// \+kubebuilder`)
	target    = regexp.MustCompile(`\]\([^)\s]*\)`)
	ending    = regexp.MustCompile(`[.!?](\s|$)`)
)

// findRiddles gives the phrases in a text that are to be said otherwise.
func findRiddles(text string) (found []string) {
	for _, r := range riddles.FindAllString(text, -1) {
		if !plainNone.MatchString(r) {
			found = append(found, r)
		}
	}
	return found
}

// longFirst is the first sentence of a doc comment if it is too long, else "". A paragraph ends a sentence, too.
func longFirst(text string) string {
	text, _, _ = strings.Cut(text, "\n\n")
	text = strings.Join(strings.Fields(text), " ")
	if at := ending.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	if len(strings.Fields(text)) <= maxFirst {
		return ""
	}
	return text
}

// generated are pages that are made of help texts, Go types and policies.
var generated = regexp.MustCompile(`^docs/(commands|policy-library|reference)\.md$`)

// Comments, documents, decisions, messages, help texts, policies and the Makefile say who does what, and a doc comment
// begins with a short sentence. Tests say what they like.
func TestWords(t *testing.T) {
	const root = "../.."
	list, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "*.go", "*.md", "*.rego", "Makefile",
		".ci/run").Output()
	require.NoError(t, err)
	var found []string
	say := func(file string, line int, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s:%d: ", file, line)+fmt.Sprintf(format, args...))
	}
	for file := range strings.Lines(string(list)) {
		file = strings.TrimSpace(file)
		switch {
		case strings.Contains(file, "testdata/"), generated.MatchString(file):
		case strings.HasSuffix(file, ".md"):
			wordsOfDocument(t, root, file, say)
		case strings.HasSuffix(file, ".go"):
			wordsOfGo(t, root, file, say)
		default:
			wordsOfLines(t, root, file, say)
		}
	}
	require.Empty(t, found, "write who does what, see CONTRIBUTING.md:\n%s", strings.Join(found, "\n"))
}

func wordsOfDocument(t *testing.T, root, file string, say func(string, int, string, ...any)) {
	text, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	code, n, p := false, 0, passage{}
	end := func() {
		for _, r := range findRiddles(quoted.ReplaceAllString(p.text, "``")) {
			say(file, p.line, "%q", r)
		}
		p = passage{line: n}
	}
	for line := range strings.Lines(string(text)) {
		n++
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		if code {
			continue
		}
		if begins.MatchString(line) {
			end()
		}
		p.text += strings.TrimSpace(line) + " "
		if wide := tooWide(line); wide > 0 {
			say(file, n, "a line of %d columns, want at most %d", wide, maxColumns)
		}
	}
	end()
}

// tooWide is how many columns a line of a document has if these are too many, else 0. Rows of tables and where links
// lead do not count.
func tooWide(line string) int {
	wide := columns(target.ReplaceAllString(line, "]"))
	if wide <= maxColumns || strings.HasPrefix(strings.TrimSpace(line), "|") {
		return 0
	}
	return wide
}

// wordsOfLines reads a file whose comments begin with #: a policy, a script or the Makefile. Comments on lines that
// follow one another are one text, so that a phrase is found across them, and so is each other line, with its strings.
func wordsOfLines(t *testing.T, root, file string, say func(string, int, string, ...any)) {
	text, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	for _, p := range passages(string(text)) {
		for _, r := range findRiddles(p.text) {
			say(file, p.line, "%q", r)
		}
	}
	if !strings.HasSuffix(file, ".rego") || strings.HasSuffix(file, "_test.rego") {
		return
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if columns(line) > maxColumns {
			say(file, n, "a line of %d columns, want at most %d", columns(line), maxColumns)
		}
	}
}

// passage is a text that begins at a line.
type passage struct {
	line int
	text string
}

// passages are the comments of a text, those of consecutive lines as one, and its other lines.
func passages(text string) (all []passage) {
	inComment, n := false, 0
	for line := range strings.Lines(text) {
		n++
		said, comment := strings.CutPrefix(strings.TrimSpace(line), "#")
		said = strings.Join(strings.Fields(said), " ")
		if comment && inComment {
			all[len(all)-1].text += " " + said
		} else {
			all = append(all, passage{n, said})
		}
		inComment = comment
	}
	return all
}

func wordsOfGo(t *testing.T, root, file string, say func(string, int, string, ...any)) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, filepath.Join(root, file), nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, c := range f.Comments {
		for _, r := range findRiddles(strings.Join(strings.Fields(c.Text()), " ")) {
			say(file, files.Position(c.Pos()).Line, "%q", r)
		}
	}
	src, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(src)) {
		n++
		if prose.MatchString(line) && !marker.MatchString(line) && columns(line) > maxColumns {
			say(file, n, "a comment of %d columns, want at most %d", columns(line), maxColumns)
		}
	}
	if !strings.HasPrefix(file, "test/") && !strings.HasSuffix(file, "_test.go") {
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				for _, r := range findRiddles(strings.Join(strings.Fields(lit.Value), " ")) {
					if !strings.EqualFold(r, "nobody") { // whom a routing may belong to
						say(file, files.Position(lit.Pos()).Line, "%q", r)
					}
				}
			}
			return true
		})
	}
	first := func(doc *ast.CommentGroup) {
		if long := longFirst(doc.Text()); long != "" {
			say(file, files.Position(doc.Pos()).Line, "a first sentence of %d words, want at most %d: %s", len(strings.Fields(long)), maxFirst, long)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.File:
			first(n.Doc)
		case *ast.FuncDecl:
			first(n.Doc)
			return false
		case *ast.GenDecl:
			first(n.Doc)
		case *ast.TypeSpec:
			first(n.Doc)
		case *ast.ValueSpec:
			first(n.Doc)
		case *ast.Field:
			first(n.Doc)
		}
		return true
	})
}

// columns is the width of a line.
func columns(line string) int {
	return utf8.RuneCountInString(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    "))
}

// The check finds what it is there for.
func TestWordsAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"nobody reads it":                           1,
		"a call of which Whoever asks knows":        2,
		"it is none, and that is no failure":        2,
		"there is no record, and there are none":    0,
		"it is no longer read":                      0,
		"what is not known stays":                   1,
		"nothing reads it, and it says who does so": 0,
	} {
		require.Len(t, findRiddles(text), want, text)
	}
	require.Equal(t, 5, columns("\té\n"))
	long := strings.Repeat("word ", maxColumns/5)
	require.Equal(t, maxColumns+2, tooWide(long+"of\n"))
	require.Zero(t, tooWide("| "+long+"|\n"))
	require.Zero(t, tooWide(long[:100]+"[a link](https://example.com/a-long-address)\n"))
	require.True(t, prose.MatchString("\t// a"))
	require.False(t, prose.MatchString("//	a table"))
	require.Equal(t, []passage{{1, "a call of which"}, {3, "x := 1"}, {4, "b"}}, passages("# a call of\n  #  which\nx := 1\n# b\n"))
	words := strings.Repeat("word ", maxFirst)
	require.Empty(t, longFirst(words+". "+words+words))
	require.Empty(t, longFirst(strings.TrimSpace(words)+":\n\n"+words+words))
	require.NotEmpty(t, longFirst(words+"more. word"))
	require.NotEmpty(t, longFirst("name: "+words))
}
