package plainyaml

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// What this program writes is plain: else reading is slow, and nothing else would tell.
func TestRecordsArePlain(t *testing.T) {
	archives, err := filepath.Glob("../../../../render/testdata/*.txtar")
	require.NoError(t, err)
	seen := map[string]int{}
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		require.NoError(t, err)
		for _, f := range archive.Files {
			if base := path.Base(f.Name); (base == "routing.yaml" || base == "status.yaml") && len(f.Data) > 0 {
				_, ok := Parse(f.Data)
				require.True(t, ok, "%s: %s", name, f.Name)
				seen[base]++
			}
		}
	}
	require.Greater(t, seen["routing.yaml"], 3)
	require.Greater(t, seen["status.yaml"], 3)
}

func TestParseLeavesTheRestToTheLibrary(t *testing.T) {
	for _, text := range []string{
		"", "\n", " a: b", "a: b\n---\nc: d", "a", "a:", "a: 'b' # c", "a: 'it''s'", `a: "\n"`, "a: &x b", "a: *x", "a: !!str b", "a: |\n  b",
		"a: b\n  c", "a:\n  b", "a:\n b: c\n  d: e", "a: b\n- c", "- a\nb: c", "a:\n- b\n c: d", "a: b: c", "a: b:", "a:  b", "a: b ", "-  a", "-", "- ", "? a",
		"a: {b}", "a: {b: c", "a: [b, ]", "a: [b,c]", "a: [b c]", "a: {b: c} d", `a: {"b": c}`, `a: ["b\n"]`, "a: ['b''c']", "a: [b\n  ]", "a: [é]", "a: [b] c", "a: {b:}", "a: {: b}",
		"a: [-, b]", "a: " + strings.Repeat("[", 200) + strings.Repeat("]", 200), "---\n---\na: b", " ---\na: b", "a: b\n---", "---", "# é\na: b", "a: é", "a:\tb", "a: b\r\n", "a: ---", "1: a", `"a": b`, "a: -", "a: - b", "a: @b", "a: \"b", "a: \"", "%YAML 1.1", "a: b\n \nc: d", strings.Repeat("- ", 200) + "a",
	} {
		_, ok := Parse([]byte(text))
		require.False(t, ok, "%q", text)
	}
}

// What most people write is plain.
func TestParseTakesWhatMostWrite(t *testing.T) {
	for _, text := range []string{
		"a: b # c", "# c\na: b", "---\n# c\n  # d\na:\n# e\n  b: c#d\n", "a: {b: c, d: {e: [f, \"g h\", 'i: j']}}", "- {a: 1}\n- [ 10m , -x ]\n- { }\n- []",
		"args: [\"--log-format\", \"json\"]\nenv:\n  - {name: LOG_LEVEL, value: info} # of the worker\nresources:\n  requests: {cpu: 100m, memory: 256Mi}\n",
	} {
		root, ok := Parse([]byte(text))
		require.True(t, ok, "%q", text)
		roots, err := ParseAny([]byte(text))
		require.NoError(t, err)
		withoutComments(roots[0])
		require.Equal(t, []*yaml.Node{root}, roots)
	}
}

// FuzzParse: what is taken for plain is what the library makes of it, to the column.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"../../v1alpha1/testdata/*.yaml", "../../../../examples/*/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, name := range files {
			data, err := os.ReadFile(name)
			require.NoError(f, err)
			f.Add(data)
		}
	}
	for _, text := range []string{"a: 1\nb: 0x1f\nc: -1.5e3\nd: 2026-01-02\ne: null\nf: True\ng: .inf\nh: 1_000\ni: 'x: y'\nj: \"- z\"\nk: {}\nl: []\nm: y\nn: 010",
		"- - a\n  - b\n-\n", "a:\n- b: c\n  d:\n  - e\n  - f: g\nh: i", "a: b\n\n\nc: d\n\n", "a: <<\n<<: b", "on: off\ntrue: false\nnull: ~", "a: ...\nb: --x\nc: a,b]c\nd: 10m\ne: 1e3\nf: 0b11\ng: 0o7\nh: 2026-01-02T03:04:05Z\ni: 123456789012345678901",
		"---\na: {b: c, d: [e, \"f g\", 'h'] , i: { }}\nj: [ -1, --k, {l: 0x1f}, on]\n- m: [[n]]", "# a\n---\n# b\nc: # d\n# e\n  f: g # h\n  # i\n- j#k #\n", "a: [b, ]\nc: {d: }",
		"a: [b,c]", "a: {b:c}", "a: ['b''c']", "a:\n  - {b: c} # d\n\n  # e\n  - [f] #g\n#h", "- # a\n  b: c"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root, ok := Parse(data)
		if !ok {
			return
		}
		roots, err := ParseAny(data)
		require.NoError(t, err)
		for _, root := range roots {
			withoutComments(root)
		}
		require.Equal(t, []*yaml.Node{root}, roots)
	})
}

// withoutComments drops the comments of a node and of those below it, which Parse does not read.
func withoutComments(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for _, c := range n.Content {
		withoutComments(c)
	}
}

// BenchmarkParse reads a status.yaml; BenchmarkParseAny reads it with the library.
func BenchmarkParse(b *testing.B) {
	data := aStatus(b)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		_, ok := Parse(data)
		require.True(b, ok)
	}
}

func BenchmarkParseAny(b *testing.B) {
	data := aStatus(b)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		_, err := ParseAny(data)
		require.NoError(b, err)
	}
}

func aStatus(b *testing.B) []byte {
	archive, err := txtar.ParseFile("../../../../render/testdata/status.txtar")
	require.NoError(b, err)
	for _, f := range archive.Files {
		if path.Base(f.Name) == "status.yaml" {
			return f.Data
		}
	}
	b.Fatal("there is none")
	return nil
}
