package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	quoted   = regexp.MustCompile("`([^`]+)`")
	testName = regexp.MustCompile(`^(Test|Fuzz)[A-Z]\w*…?$`)
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// begins is a line that begins a paragraph, a row of a table or an item of a list.
var begins = regexp.MustCompile(`^\s*($|[|#]|[-*] )`)

// TestDocumentsNameTests: each test that these documents name is in the package that they name before it, in the same
// paragraph, row or item. A name with … stands for all that begin like that.
func TestDocumentsNameTests(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, document := range []string{"SECURITY.md", "docs/guarantees.md", "docs/tenancy.md", "docs/threat-model.md"} {
		text, err := os.ReadFile(filepath.Join(root, document))
		require.NoError(t, err)
		var known []string
		for i, line := range strings.Split(string(text), "\n") {
			if begins.MatchString(line) {
				known = nil
			}
			for _, m := range quoted.FindAllStringSubmatch(line, -1) {
				switch name := m[1]; {
				case testName.MatchString(name):
					assert.True(t, names(known, name), "%s:%d: there is no %s in the package that is named before it", document, i+1, name)
				default:
					if tests := testsIn(t, filepath.Join(root, name)); len(tests) > 0 {
						known = tests
					}
				}
			}
		}
	}
}

// names reports whether a name is one of the known ones, or with … the beginning of one.
func names(known []string, name string) bool {
	for _, k := range known {
		if begin, many := strings.CutSuffix(name, "…"); k == name || many && strings.HasPrefix(k, begin) {
			return true
		}
	}
	return false
}

// testsIn are the tests and fuzz targets of a package, none where there is no such folder.
func testsIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	var out []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			out = append(out, m[1])
		}
	}
	return out
}

// TestPackagesAreListed: docs/packages.md has a row for each package, and names no other.
func TestPackagesAreListed(t *testing.T) {
	var listed, want []string
	for line := range strings.Lines(read(t, "docs/packages.md")) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 { // the table of caches has more, and prose has fewer
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			listed = append(listed, m[1])
		}
	}
	for _, p := range packages(t) {
		want = append(want, strings.TrimPrefix(p.ImportPath, module))
	}
	assert.ElementsMatch(t, append(want, "test"), listed, "docs/packages.md: one row for each package")
}

var (
	listedDecision = regexp.MustCompile(`(?m)^- \[(\d{4})\]\((\d{4}-[a-z0-9-]+\.md)\) `)
	supersededRow  = regexp.MustCompile(`(?m)^\| (?:\[(\d+)\]\((\d{4}-[a-z0-9-]+\.md)\)|([\d, ]+)) \|`)
)

// TestDecisionsAreListed: docs/decisions/README.md lists each page once, in order below its heading. Its table has each
// page that another one replaced, and each number without a page.
func TestDecisionsAreListed(t *testing.T) {
	readme := read(t, "docs/decisions/README.md")
	var listed, superseded, pages, want, missing []string
	for section := range strings.SplitSeq(readme, "\n## ") {
		var names []string
		for _, m := range listedDecision.FindAllStringSubmatch(section, -1) {
			names = append(names, m[2])
			assert.True(t, strings.HasPrefix(m[2], m[1]), "%s leads to %s", m[1], m[2])
		}
		assert.IsNonDecreasing(t, names)
		listed = append(listed, names...)
	}
	for _, m := range supersededRow.FindAllStringSubmatch(readme, -1) {
		if m[3] != "" {
			missing = strings.Split(m[3], ", ")
			continue
		}
		superseded = append(superseded, m[2])
		assert.Regexp(t, "^0*"+m[1]+"-", m[2])
	}
	paths, err := filepath.Glob("../../docs/decisions/0*.md")
	require.NoError(t, err)
	for _, path := range paths {
		name := filepath.Base(path)
		pages = append(pages, name)
		if strings.Contains(read(t, "docs/decisions/"+name), "\nSuperseded ") {
			want = append(want, name)
		}
	}
	assert.ElementsMatch(t, pages, listed)
	assert.Equal(t, want, superseded)
	last, err := strconv.Atoi(pages[len(pages)-1][:4])
	require.NoError(t, err)
	var gaps []string
	for n := 1; n <= last; n++ {
		if !slices.ContainsFunc(pages, func(p string) bool { return strings.HasPrefix(p, fmt.Sprintf("%04d-", n)) }) {
			gaps = append(gaps, strconv.Itoa(n))
		}
	}
	assert.Equal(t, gaps, missing)
}

// TestGlossaryIsSorted: the words of docs/glossary.md are in alphabetical order, once each.
func TestGlossaryIsSorted(t *testing.T) {
	var words []string
	for line := range strings.Lines(read(t, "docs/glossary.md")) {
		if cells := strings.Split(line, "|"); len(cells) == 4 && !strings.HasPrefix(line, "| ---") {
			words = append(words, strings.ToLower(strings.TrimSpace(cells[1])))
		}
	}
	require.NotEmpty(t, words)
	assert.IsIncreasing(t, words[1:])
}
