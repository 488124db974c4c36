package policy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/policy/parse"
)

func TestConflictsBetweenDataFilesAreProblems(t *testing.T) {
	const head = "rampart:\n  config:\n    rollout:\n      freeze:\n"
	weekend := parse.DataFile{Path: "data.yaml", Content: head + "        windows: [{name: weekend, days: [Sat, Sun]}]\nshop: {max: 3}\n"}
	for name, tc := range map[string]struct {
		files []parse.DataFile
		want  []string
	}{
		"differently": {[]parse.DataFile{weekend, {Path: "z.yaml", Content: head + "        timezone: Europe/Berlin\n        windows: [{name: easter, dates: [2030-04-19]}]\n"}},
			[]string{"z.yaml:6: rampart.config.rollout.freeze.windows: data.yaml:5 sets it too, and differently: give it in one place"}},
		"alike":            {[]parse.DataFile{weekend, {Path: "z.yaml", Content: head + "        windows:\n          - {days: [Sat, Sun], name: weekend}\n"}}, nil},
		"other parameters": {[]parse.DataFile{weekend, {Path: "z.yaml", Content: head + "        timezone: Europe/Berlin\nshop: {max: 4}\n"}}, nil},
		"a number, thrice": {[]parse.DataFile{weekend, {Path: "a.yaml", Content: "rampart: {config: {drift: {}, rollout: {canary: {maxStuck: 1}}}}"}, {Path: "b.yaml", Content: "rampart: {config: {rollout: {canary: {maxStuck: 2}}}}"}, {Path: "c.yaml", Content: "rampart: {config: {rollout: {canary: {maxStuck: 1}}}}"}},
			[]string{"b.yaml:1: rampart.config.rollout.canary.maxStuck: a.yaml:1 sets it too, and differently: give it in one place"}},
		"an object for a list": {[]parse.DataFile{weekend, {Path: "z.yaml", Content: head + "        windows: {}\n"}},
			[]string{"z.yaml:5: rampart.config.rollout.freeze.windows: an object is given; expected: a list of objects",
				"z.yaml:5: rampart.config.rollout.freeze.windows: data.yaml:5 sets it too, and differently: give it in one place"}},
		"in one file": {[]parse.DataFile{{Path: "data.yaml", Content: head + "        windows: []\n"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range Compile(Config{Data: tc.files}).Problems() {
				got = append(got, p.Error())
			}
			require.Equal(t, tc.want, got)
		})
	}
	// Layers of the bot's own configuration are stacked on purpose.
	require.Empty(t, Compile(Config{Floor: []Layer{{Data: []parse.DataFile{weekend}}, {Data: []parse.DataFile{{Path: "z.yaml", Content: head + "        windows: []\n"}}}}}).Problems())
}
