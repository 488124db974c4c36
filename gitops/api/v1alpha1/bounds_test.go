package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

const head = "apiVersion: temporal.io/v1alpha1\nkind: Connection\nmetadata: {name: a}\n"

// bomb gives n levels of ten aliases each: 10^n values.
func bomb(n int, leaf string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "a0: &a0 %s\n", leaf)
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String()
}

func repeat(s string, size int) string { return strings.Repeat(s, size/len(s)) }

// TestBounds decodes hostile files. None may take long, and none may be taken for a good one.
func TestBounds(t *testing.T) {
	const size = v1alpha1.MaxFileSize - 512
	var distinct strings.Builder
	for i := 0; distinct.Len() < size-20; i++ {
		fmt.Fprintf(&distinct, "k%d: 1\n", i)
	}
	tests := map[string]struct{ text, want string }{
		"alias bomb":            {head + bomb(9, "x"), "more than 200000 values"},
		"bomb of large texts":   {head + "s: &s " + repeat("x", size/2) + "\nl: [" + repeat("*s,", size/4) + "]\n", "more than 4194304 bytes"},
		"bomb of merges":        {head + "m0: &m0 {a: 1}\n" + merges(30), "more than 200000 values"},
		"alias in itself":       {head + "a: &a [*a]\n", "alias *a is inside what it stands for"},
		"alias in itself, deep": {head + "a: &a {b: {c: [1, {d: *a}]}}\n", "alias *a is inside what it stands for"},
		"merge of itself":       {head + "a: &a {<<: *a}\n", "alias *a is inside what it stands for"},
		"root in itself":        {"&r\n" + head + "spec: *r\n", "alias *r is inside what it stands for"},
		"deep":                  {head + "a: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "\n", "nested more than 100 deep"},
		"very deep":             {head + "a: " + repeat("[", size), "exceeded max depth"},
		"very deep in blocks":   {head + "a:\n" + repeat("- ", size), "exceeded max depth"},
		"too large":             {head + repeat("# more\n", v1alpha1.MaxFileSize), "more than 1048576 are not read"},
		"unknown fields":        {head + "spec:\n " + strings.ReplaceAll(distinct.String()[:strings.Index(distinct.String(), "\nk40000:")], "\nk", "\n k"), "too many problems"},
		"unknown fields at top": {head + distinct.String(), "too many problems"},
		"one key":               {head + repeat("a: b\n", size/2), "too many problems"},
		"pairs of keys":         {head + strings.Repeat(distinct.String()[:strings.Index(distinct.String(), "k40000:")], 2), "too many problems"},
		"many objects":          {repeat(head+"---\n", size), "not checked"},
		"list of aliases": {"apiVersion: v1\nkind: List\nx: &x {" + repeat("a,", size/2) + "}\nitems: [" + repeat("*x,", size/3) + "]\n" +
			"# temporal.io", "aliases stand for more than 4000000 keys: write the values out"},
		"list of lists":   {"apiVersion: v1\nkind: List\nx: &x {apiVersion: v1, kind: List, items: []}\nitems: [" + repeat("*x,", size/2) + "]\n", "a list inside a list"},
		"merges of many":  {head + "b: &b {}\nspec: {<<: [" + repeat("*b,", size) + "]}\n", "more than 200000 values"},
		"many variables":  {variables(60_000), "too many problems"},
		"long unknown":    {head + "? " + repeat("x", size/2) + "\n: 1\n", "unknown field"},
		"environments":    {"apiVersion: rampart.dev/v1alpha1\nkind: Config\nx: &e {name: a, output: {path: a}}\nspec: {environments: [" + repeat("*e,", 100_000) + "]}", "more than 1000 environments"},
		"broken at end":   {head + repeat("a: b\n", 60_000) + "\t{", "tabs can't indent"},
		"not UTF-8":       {head + "a: \xff\n", "not UTF-8"},
		"UTF-16":          {"\xff\xfea\x00", "UTF-16"},
		"binary":          {"\x00\x01\x02" + head, "not valid YAML"},
		"lone surrogates": {`{"apiVersion": "temporal.io/v1alpha1", "kind": "Connection", "x": "\ud83d"}`, "not valid YAML"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			documents, problems := v1alpha1.Decode("x.yaml", []byte(test.text))
			// Generous, for a busy machine with the race detector on; without the bounds it would be hours.
			require.Less(t, time.Since(start), 20*time.Second)
			for _, d := range documents {
				require.Nil(t, d.Object)
			}
			var all strings.Builder
			for i, p := range problems {
				if i > 0 && p.Line == problems[i-1].Line {
					require.LessOrEqual(t, problems[i-1].Column, p.Column)
				} else if i > 0 {
					require.Less(t, problems[i-1].Line, p.Line)
				}
				all.WriteString(p.String() + "\n")
			}
			for _, d := range documents {
				for _, p := range d.Problems {
					all.WriteString(p.String() + "\n")
				}
			}
			require.True(t, strings.Contains(all.String(), test.want), "%.2000s", all.String())
			require.LessOrEqual(t, len(problems), 200)
		})
	}
}

func merges(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "m%d: &m%d {<<: [*m%d, *m%d], k%d: 1}\n", i, i, i-1, i-1, i)
	}
	return b.String()
}

// variables is a spec with one variable many times.
func variables(n int) string {
	return `apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata: {name: a, annotations: {}}
spec:
  template: {spec: {containers: [{name: a, image: a, env: [&e {name: A, value: "1"}, ` + strings.Repeat("*e,", n) + `]}]}}
`
}

// TestAliasBombIsFast holds the figure: the bound is on what is expanded, so a bomb costs no more than a full file.
func TestAliasBombIsFast(t *testing.T) {
	text := []byte(head + bomb(20, "x"))
	least := time.Hour
	for range 5 {
		start := time.Now()
		_, problems := v1alpha1.Decode("bomb.yaml", text)
		least = min(least, time.Since(start))
		require.True(t, v1alpha1.HasErrors(problems))
	}
	t.Logf("a bomb of 10^20 values in %d bytes: refused in %s", len(text), least)
	require.Less(t, least, time.Second)
}

// TestQuietAboutOthers: a file without one of our groups in it can't be wrong, whatever is in it.
func TestQuietAboutOthers(t *testing.T) {
	for _, text := range []string{"a: [", "{{ template }}\n a: b\n- c", "a: \xff", repeat("a: b\n", 2*v1alpha1.MaxFileSize), bomb(9, "x"),
		"a: &a [*a]", "apiVersion: v1\nkind: ConfigMap\ndata: {a: 1, a: 2}"} {
		documents, problems := v1alpha1.Decode("x.yaml", []byte(text))
		require.False(t, v1alpha1.HasErrors(problems), "%v", problems)
		for _, d := range documents {
			require.True(t, d.Foreign())
		}
	}
	require.True(t, v1alpha1.MayHoldObjects([]byte(`{"apiVersion": "temporal.io\/v1alpha1"}`)))
	require.True(t, v1alpha1.MayHoldObjects([]byte("apiVersion: rampart.dev/v1alpha1")))
	require.False(t, v1alpha1.MayHoldObjects([]byte("apiVersion: v1")))
}
