// Package rego holds the default policies, embedded. These are the Rego library, its tests, its default parameters, the
// schema of those parameters and the schema of the input.
//
// The modules of the four packages that are asked for verdicts (rampart.spec, rampart.rollout, rampart.drift,
// rampart.sunset) hold contract rules only, so that a repository's modules can add rules to the same packages without
// meeting a helper's name. The helpers are in rampart.library.* and rampart.facts.
//
// Everything here is constant and safe for concurrent use. All of it works with plain opa test and opa eval.
package rego

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed */*.rego data.yaml config.schema.json schema/input.json
var files embed.FS

// root is prefixed to the paths of embedded files in messages, so that they are told apart from a repository's own.
const root = "rampart"

// Module is one Rego file. Path is for messages.
type Module struct{ Path, Source string }

// Modules are the default policies, sorted by path, without their tests.
func Modules() []Module { return modules(func(p string) bool { return !IsTest(p) }) }

// Tests are the tests of the default policies, sorted by path.
func Tests() []Module { return modules(IsTest) }

// IsTest reports whether a path is that of a file with tests: *_test.rego.
func IsTest(path string) bool { return strings.HasSuffix(path, "_test.rego") }

// Data is the YAML document with the default parameters, below rampart.config.
func Data() (path, content string) { return root + "/data.yaml", read("data.yaml") }

// ConfigSchema is the JSON Schema of rampart.config: the type of each parameter. What the library does not know is
// refused; parameters of other policies are elsewhere in data.
func ConfigSchema() string { return read("config.schema.json") }

// InputSchema is the JSON Schema (draft-07) of the document that policies see as input, as opa check --schema reads it.
func InputSchema() string { return read("schema/input.json") }

func modules(keep func(string) bool) []Module {
	names, err := fs.Glob(files, "*/*.rego")
	if err != nil {
		panic(err) // the pattern is constant
	}
	var out []Module
	for _, name := range names {
		if keep(name) {
			out = append(out, Module{Path: path.Join(root, name), Source: read(name)})
		}
	}
	return out
}

func read(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the files are embedded
	}
	return string(b)
}
