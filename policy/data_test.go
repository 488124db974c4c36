package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/rego"
)

func TestDataMerges(t *testing.T) {
	data, problems := loadData([]DataFile{
		{"a.yaml", "acme:\n  limits: {gold: 10, silver: 20}\n  list: [1, 2]\n  name: one\nrampart:\n  config:\n    rollout:\n      steps: {maxPercentage: 50.5}\n    acme: {any: thing}\n"},
		{"b.json", `{"acme": {"limits": {"gold": 5, "bronze": null}, "list": [3], "name": {"now": "an object"}}}`},
		{"c.yaml", "acme:\n  date: 2026-12-25\n  at: 2026-12-25T00:00:00Z\n  clock: 08:00\n  hex: 0x10\n  big: 123456789012345678901234567890\n  yes: yes\n  on: true\n  copy: &c [a]\n  same: *c\n"},
	})
	require.Empty(t, problems)
	require.Empty(t, cmp.Diff(map[string]any{
		"limits": map[string]any{"gold": json.Number("5"), "silver": json.Number("20"), "bronze": nil},
		"list":   []any{json.Number("3")},
		"name":   map[string]any{"now": "an object"},
		"date":   "2026-12-25", "at": "2026-12-25T00:00:00Z", "clock": "08:00", "hex": json.Number("16"),
		"big": json.Number("1.2345678901234568e+29"), "yes": "yes", "on": true, "copy": []any{"a"}, "same": []any{"a"},
	}, data["acme"]))
	config := data["rampart"].(map[string]any)["config"].(map[string]any)
	require.Equal(t, map[string]any{"maxPercentage": json.Number("50.5"), "maxIncrease": json.Number("100")}, config["rollout"].(map[string]any)["steps"])
	require.Equal(t, map[string]any{"any": "thing"}, config["acme"])
	require.Contains(t, config["rollout"], "freeze")
}

func TestDataProblems(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for _, c := range "bcdefgh" {
		p := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+p+",", 9) + "*" + p + "]\n"
	}
	for name, tc := range map[string]struct{ content, want string }{
		"a list":              {"- a\n", "d.yaml:1: a data file has to hold an object"},
		"two documents":       {"a: 1\n---\nb: 2\n", "d.yaml:2: a data file holds one YAML document"},
		"a key twice":         {"a:\n  b: 1\n  b: 2\n", `d.yaml:3: key "b" is given twice`},
		"a key that is a map": {"? {a: 1}\n: 2\n", "d.yaml:1: a key has to be a string"},
		"a merge":             {"a: &a {b: 1}\nc: {<<: *a}\n", "d.yaml:2: merge keys (<<) are not read in data files"},
		"no number":           {"a: .inf\n", "d.yaml:1: .inf is no number that JSON has"},
		"a tag":               {"a: !!binary aGk=\n", "d.yaml:1: tag !!binary is not read in data files"},
		"a bomb":              {bomb, "more than 200000 values"},
		"a long text, often":  {"a: &a " + strings.Repeat("x", 1<<19) + "\nb: [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n", "bytes when aliases are expanded"},
		"an alias in itself":  {"a: &a [*a]\n", "nested more than 100 deep, or an alias within itself"},
		"too long":            {"# " + strings.Repeat("x", MaxFileSize), "d.yaml: the file has 1048578 bytes; more than 1048576 are not read"},
		"no config":           {"rampart: 3\n", "d.yaml:1: rampart has to be an object with config"},
		"a bad window":        {"rampart:\n  config:\n    rollout:\n      freeze:\n        windows:\n          - name: a\n            days: [Mon]\n          - name: b\n            days: [Someday]\n", "d.yaml:9: rampart.config.rollout.freeze.windows.1.days.0"},
		"a window of nothing": {"rampart: {config: {rollout: {freeze: {windows: [{name: a}]}}}}", "d.yaml:1: rampart.config.rollout.freeze.windows.0"},
		"a start and no end":  {"rampart: {config: {rollout: {freeze: {windows: [{name: a, days: [Mon], start: 2026-01-01T00:00:00Z}]}}}}", "Has a dependency on end"},
		"a bad time":          {"rampart: {config: {rollout: {freeze: {windows: [{name: a, days: [Mon], from: 8am}]}}}}", "Does not match pattern"},
		"a number for a list": {"rampart: {config: {spec: {images: {mutableTags: latest}}}}", "Expected: array, given: string"},
		"config that is none": {"rampart: {config: []}\n", "d.yaml:1: rampart.config: Invalid type"},
		"a bad duration":      {"rampart: {config: {sunset: {evidence: {minDeleteDelay: 1 day}}}}", "Does not match pattern"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := loadData([]DataFile{{"d.yaml", tc.content}})
			require.NotEmpty(t, problems)
			require.Contains(t, problems[0].Error(), tc.want)
			require.Equal(t, "d.yaml", problems[0].Path)
		})
	}
}

func FuzzData(f *testing.F) {
	_, content := rego.Data()
	for _, seed := range []string{content, "a: &a [*a]\n", "? x\n: y\n", "{\"a\": [1.5, null, true]}", "a: 2026-01-01\n--- \nb: 1\n", "a: 0o7\nb: 1e400\nc: .nan\n", "!!map {a: !!str 1}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		node, err := readData(DataFile{"d.yaml", content})
		if err != nil {
			if _, ok := err.(Problem); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if node == nil {
			return
		}
		b, err := json.Marshal(node.object())
		if err != nil {
			t.Fatalf("not JSON: %v", err)
		}
		// Its JSON reads back as the same.
		again, err := readData(DataFile{"d.json", string(b)})
		if err == nil && again != nil {
			if diff := cmp.Diff(node.object(), again.object()); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}
