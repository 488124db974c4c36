package parse

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/rego"
)

func TestDataMerges(t *testing.T) {
	data, problems := LoadData([]DataFile{
		{"a.yaml", "acme:\n  limits: {gold: 10, silver: 20}\n  list: [1, 2]\n  name: one\nrampart:\n  config:\n    rollout:\n      steps: {maxPercentage: 50.5}\n"},
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
		"no number":           {"a: .inf\n", "d.yaml:1: .inf cannot be written as a JSON number"},
		"a tag":               {"a: !!binary aGk=\n", "d.yaml:1: tag !!binary is not read in data files"},
		"a bomb":              {bomb, "more than 200000 values"},
		"a long text, often":  {"a: &a " + strings.Repeat("x", 1<<19) + "\nb: [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n", "bytes in all data files when aliases are expanded"},
		"an alias in itself":  {"a: &a [*a]\n", "nested more than 100 deep, or an alias within itself"},
		"too long":            {"# " + strings.Repeat("x", MaxFileSize), "d.yaml: the file has 1048578 bytes; more than 1048576 are not read"},
		"no config":           {"rampart: 3\n", "d.yaml:1: rampart has to be an object with config"},
		"a number for a list": {"rampart: {config: {spec: {images: {mutableTags: latest}}}}", `d.yaml:1: rampart.config.spec.images.mutableTags: "latest" is given; expected: list of texts`},
		"nothing for a rule":  {"rampart:\n  config:\n    rollout:\n      freeze:\n", "d.yaml:4: rampart.config.rollout.freeze: nothing is given; expected: an object"},
		"config that is none": {"rampart: {config: []}\n", "d.yaml:1: rampart.config: an empty list is given; expected: an object"},
		"confg":               {"rampart:\n  confg: {}\n", `d.yaml:2: data below rampart may hold config only, not "confg" (did you mean config?)`},
		"a bad duration":      {"rampart: {config: {sunset: {evidence: {minDeleteDelay: 1 day}}}}", `minDeleteDelay: "1 day" is given; expected: duration, such as 1h30m`},
		"a percentage":        {"rampart: {config: {rollout: {steps: {maxIncrease: 50%}}}}", `maxIncrease: "50%" is given; expected: number from 0 to 100`},
		"too much":            {"rampart: {config: {rollout: {steps: {maxIncrease: 101}}}}", `maxIncrease: 101 is given; expected: number from 0 to 100`},
		"a choice":            {"rampart: {config: {drift: {manifest: {answer: adapt}}}}", `answer: "adapt" is given; expected: revert, adopt, hold (did you mean adopt?)`},
		"an unknown group":    {"rampart:\n  config:\n    rolout: {freeze: {}}\n", "d.yaml:3: rampart.config: there is no group rolout (did you mean rollout?)"},
		"an unknown rule":     {"rampart:\n  config:\n    rollout:\n      freze: {}\n", "d.yaml:4: rampart.config.rollout: there is no rule freze (did you mean freeze?)"},
		"a far rule":          {"rampart: {config: {drift: {x: 1}}}", "d.yaml:1: rampart.config.drift: there is no rule x (there is manifest, routing)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := LoadData([]DataFile{{"d.yaml", tc.content}})
			require.NotEmpty(t, problems)
			require.Contains(t, problems[0].Error(), tc.want)
			require.Equal(t, "d.yaml", problems[0].Path)
		})
	}
}

// The line that YAML names is the problem's.
func TestBrokenYAML(t *testing.T) {
	_, problems := LoadData([]DataFile{{"d.yaml", "a: 1\nb: 2\nc:\n  d: 1\n  e: @x\n"}, {"e.yaml", "a: \"\x00\"\n"}})
	require.Len(t, problems, 2)
	require.Equal(t, 5, problems[0].Line)
	require.Contains(t, problems[0].Error(), "d.yaml:5: not valid YAML: found character that cannot start any token")
	require.Contains(t, problems[1].Error(), "e.yaml:1: not valid YAML: control characters are not allowed")
}

// A window that would freeze nothing is a problem of the line that is wrong.
func TestFreezeWindowsAreChecked(t *testing.T) {
	const name = "rampart.config.rollout.freeze.windows.0"
	for window, want := range map[string]string{
		"days: [Someday]":                       `6: ` + name + `.days.0: "Someday" is given; expected: Mon, Tue, Wed, Thu, Fri, Sat, Sun`,
		"days: [sat]":                           `6: ` + name + `.days.0: "sat" is given; expected: Mon, Tue, Wed, Thu, Fri, Sat, Sun (did you mean Sat?)`,
		"days: Sat":                             `6: ` + name + `.days: "Sat" is given; expected: a list of Mon, Tue, Wed, Thu, Fri, Sat, Sun`,
		"days: []":                              `6: ` + name + `.days: an empty list is given; expected: a list of Mon, Tue, Wed, Thu, Fri, Sat, Sun`,
		"labels: {}":                            `6: ` + name + `: give days, dates, or start and end`,
		"day: [Sat]":                            `6: ` + name + `: there is no parameter day (did you mean days?)`,
		"start: 2026-01-01T00:00:00Z":           `6: ` + name + `: start is given without end`,
		"days: [Sat]\n            from: 8am":    `7: ` + name + `.from: "8am" is given; expected: HH:MM in quotes, "24:00" for the end of the day`,
		"days: [Sat]\n            from: 8":      `7: ` + name + `.from: 8 is given; expected: HH:MM in quotes, "24:00" for the end of the day`,
		"days: [Sat]\n            timezon: UTC": `7: ` + name + `: there is no parameter timezon (did you mean timezone?)`,
		"dates: [12-32]":                        `6: ` + name + `.dates.0: "12-32" is given; expected: a day of the calendar, as YYYY-MM-DD or MM-DD`,
		"dates: [2026-13-40]":                   `6: ` + name + `.dates.0: "2026-13-40" is given; expected: a day of the calendar, as YYYY-MM-DD or MM-DD`,
		"days: [Sat]\n            timezone: Europe/Berln":                                               `7: ` + name + `.timezone: there is no time zone Europe/Berln (did you mean Europe/Berlin?)`,
		"days: [Sat]\n            timezone: Berlin":                                                     `7: ` + name + `.timezone: there is no time zone Berlin (did you mean Europe/Berlin?)`,
		"days: [Sat]\n            timezone: CEST":                                                       `7: ` + name + `.timezone: there is no time zone CEST: name one by its place, such as Europe/Berlin`,
		"days: [Sat]\n            timezone: Utc":                                                        `7: ` + name + `.timezone: there is no time zone Utc (did you mean UTC?)`,
		"days: [Sat]\n            timezone: Local":                                                      `7: ` + name + `.timezone: Local is the time zone of whichever machine decides`,
		"days: [Sat]\n            timezone: 1":                                                          `7: ` + name + `.timezone: 1 is given; expected: time zone, such as Europe/Berlin`,
		"dates: [02-30]":                                                                                `6: ` + name + `.dates.0: 02-30 is not a day of the calendar`,
		"dates: [02-29, 2027-02-29]":                                                                    `6: ` + name + `.dates.1: 2027-02-29 is not a day of the calendar`,
		"start: 2026-02-03T00:00:00Z\n            end: 2026-02-01T00:00:00Z":                            `7: ` + name + `.end: 2026-02-01T00:00:00Z is not after the start, 2026-02-03T00:00:00Z: the window is never open`,
		"start: 2026-02-03T00:00:00+02:00\n            end: 2026-02-02T22:00:00Z":                       `7: ` + name + `.end: 2026-02-02T22:00:00Z is not after the start`,
		"start: 2026-02-03T00:00:00Z\n            end: 2026-02-30T00:00:00Z":                            `7: ` + name + `.end: 2026-02-30 is not a day of the calendar`,
		"start: 2026-02-03T00:00:00Z\n            end: 2026-02-05T00:00:00Z\n            days: [Sat]":   `8: ` + name + `.days: has no place beside start and end: make two windows of it`,
		"start: 2026-02-03T00:00:00Z\n            end: 2026-02-05T00:00:00Z\n            timezone: UTC": `8: ` + name + `.timezone: has no place beside start and end: make two windows of it`,
	} {
		t.Run(window, func(t *testing.T) {
			_, problems := LoadData([]DataFile{{"d.yaml", "rampart:\n  config:\n    rollout:\n      freeze:\n        windows:\n          - " + window +
				"\n            name: a\n"}})
			require.Len(t, problems, 1, "%v", problems)
			require.Contains(t, problems[0].Error(), "d.yaml:"+want)
		})
	}
}

// Two files that set a parameter differently hold; the library's defaults and parameters of others are
// replaced. TestFreezeZone: the time zone of all windows is checked too, and what is fine is not complained of.
func TestFreezeZone(t *testing.T) {
	_, problems := LoadData([]DataFile{{"d.yaml", "rampart:\n  config:\n    rollout:\n      freeze:\n        timezone: Europa/Berlin\n"}})
	require.Equal(t, []Problem{{Path: "d.yaml", Line: 5, Message: "rampart.config.rollout.freeze.timezone: there is no time zone Europa/Berlin (did you mean Europe/Berlin?)"}}, problems)
	_, problems = LoadData([]DataFile{{"d.yaml", "rampart: {config: {rollout: {freeze: {timezone: Europe/Berlin, windows: [{name: a, dates: [02-29, 2028-02-29], timezone: UTC}, " +
		"{name: b, start: 2026-02-03T00:00:00.5Z, end: 2026-02-03T00:00:01Z, labels: {a.b: c}}, {name: c, days: [Mon], from: \"08:00\", to: \"08:00\"}]}}}}"}})
	require.Empty(t, problems)
}

// What is offered in place of a misspelled time zone can be loaded. The list is that of the time zone
// database.
func TestSuggestedTimeZonesCanBeLoaded(t *testing.T) {
	for _, name := range strings.Fields(zones) {
		_, err := time.LoadLocation(name)
		require.NoError(t, err)
	}
	require.Contains(t, strings.Fields(zones), "America/New_York")
}

func FuzzData(f *testing.F) {
	_, content := rego.Data()
	for _, seed := range []string{content, "a: &a [*a]\n", "? x\n: y\n", "{\"a\": [1.5, null, true]}", "a: 2026-01-01\n--- \nb: 1\n", "a: 0o7\nb: 1e400\nc: .nan\n", "!!map {a: !!str 1}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		node, err := ReadData(DataFile{"d.yaml", content})
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
		again, err := ReadData(DataFile{"d.json", string(b)})
		if err == nil && again != nil {
			if diff := cmp.Diff(node.object(), again.object()); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}
