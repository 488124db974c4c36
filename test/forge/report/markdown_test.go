package report_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// ours is what our Markdown is made of, as a parser sees it; what others wrote is in code.
var ours = map[ast.NodeKind]bool{ast.KindDocument: true, ast.KindParagraph: true, ast.KindText: true,
	ast.KindTextBlock: true, ast.KindHeading: true, ast.KindList: true, ast.KindListItem: true,
	ast.KindCodeSpan: true, ast.KindEmphasis: true, ast.KindFencedCodeBlock: true, ast.KindHTMLBlock: true,
	east.KindTable: true, east.KindTableHeader: true, east.KindTableRow: true, east.KindTableCell: true}

var (
	ownHTML  = regexp.MustCompile(`^(<details>\n<summary>[A-Za-z0-9 ,:]+</summary>\n|</details>\n)$`)
	ownWords = regexp.MustCompile(`^[A-Za-z0-9 .,:;()%→-]*$`)
)

// requireOurs parses Markdown as forges do, and requires that only its code is by others.
func requireOurs(t *testing.T, body string) {
	t.Helper()
	source := []byte(body)
	with := goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList)
	doc := goldmark.New(with).Parser().Parse(text.NewReader(source))
	require.NoError(t, ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		require.True(t, ours[n.Kind()], "a %s in\n%s", n.Kind(), body)
		switch n := n.(type) {
		case *ast.CodeSpan:
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			require.Regexp(t, ownWords, string(n.Segment.Value(source)))
			require.NotContains(t, string(n.Segment.Value(source)), sentinel)
		case *ast.HTMLBlock:
			require.Regexp(t, ownHTML, string(n.Lines().Value(source)))
		}
		return ast.WalkContinue, nil
	}))
}

const sentinel = "zzevil"

// TestMarkdownParsersFindOurs: a Markdown parser finds in our texts what the tests in internal/report take them for.
func TestMarkdownParsersFindOurs(t *testing.T) {
	const goldens = "../../../internal/report/testdata"
	names, err := filepath.Glob(goldens + "/pullrequest-*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range append(names, goldens+"/preview.txtar") {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		bodies := 0
		for _, f := range txtar.Parse(data).Files {
			if f.Name == "body.md" || f.Name == "markdown" {
				requireOurs(t, string(f.Data))
				bodies++
			}
		}
		require.Equal(t, 1, bodies, name)
	}
	for part := range strings.SplitSeq("` `` \\ \\` | \\| @team #12 GH-12 o/r#1 !12 http://e.example www.e.example m@e.example "+
		"<b>x</b> <!-- </details> ![x](y) [x](y) [x]:y \n#\u00a0x\n \n/x ``` ~~~ --- *** $x$ :tada: [^1] [[_TOC_]] &amp; &#64; *x* __x__ "+
		"\n```\n \n\n- \n>x \u202e \x00 \xff", " ") {
		requireOurs(t, by(sentinel+part+sentinel).Body())
		requireOurs(t, by(part).Body())
	}
	requireOurs(t, by(evil).Body())
}
