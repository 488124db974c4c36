package takeover_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/takeover"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden imports what is in an archive: live objects in live.yaml, files of the repository below repo/, Deployments
// without versions in plain, one a line. What comes of it follows: problems; the files below out/; and what these files
// are to the controller, in export.yaml, with owners.yaml as the cluster's objects.
func TestGolden(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, file := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			got := play(t, archive)
			if *update {
				require.NoError(t, os.WriteFile(file, txtar.Format(got), 0o644))
			}
			require.Empty(t, cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(got))), "(-want +got)")
		})
	}
}

// play keeps what is given and adds what comes of it.
func play(t *testing.T, given *txtar.Archive) *txtar.Archive {
	out := &txtar.Archive{Comment: given.Comment}
	in := takeover.Input{Environment: v1alpha1.DefaultConfig().Spec.Environments[0], Specs: "workers"}
	in.Environment.Name, in.Environment.Output.Path, in.Environment.ManagerIdentity = "prod", "deploy/prod", "rampart/prod"
	files := map[string]string{"rampart.yaml": config}
	var owners []rollout.TextFile
	for _, f := range given.Files {
		switch rest, repo := strings.CutPrefix(f.Name, "repo/"); {
		case repo:
			files[rest] = string(f.Data)
			documents, problems := v1alpha1.Decode(rest, f.Data)
			require.False(t, v1alpha1.HasErrors(problems), problems)
			in.Repository = append(in.Repository, documents...)
		case f.Name == "live.yaml":
			in.Live = append(in.Live, rollout.TextFile{Path: f.Name, Text: string(f.Data)})
		case f.Name == "owners.yaml":
			owners = append(owners, rollout.TextFile{Path: f.Name, Text: string(f.Data)})
		case f.Name == "plain":
			for line := range strings.Lines(string(f.Data)) {
				of := append(strings.Fields(line), "", "")
				in.Plain = append(in.Plain, takeover.Plain{Deployment: rollout.Name{Name: of[0]}, TemporalNamespace: of[1], Connection: of[2]})
			}
		default:
			continue
		}
		out.Files = append(out.Files, f)
	}
	add := func(name, text string) {
		if text != "" {
			out.Files = append(out.Files, txtar.File{Name: name, Data: []byte(text)})
		}
	}
	imported, problems := takeover.FromLive(in)
	var said strings.Builder
	for _, p := range problems {
		said.WriteString(string(p.Severity) + " " + p.String() + "\n")
	}
	add("problems", said.String())
	for _, f := range imported.Files {
		add("out/"+f.Path, f.Text)
		files[f.Path] = f.Text
	}
	again, _ := takeover.FromLive(in)
	require.Equal(t, imported, again, "the same input gives the same files")
	if len(imported.Files) > 0 {
		text, warnings := export(t, files, owners)
		add("export.warnings", warnings)
		add("export.yaml", text)
	}
	return out
}

const config = "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec: {environments: [{name: prod, specs: ['workers/**'], output: {path: deploy/prod}}]}\n"

// export reads the files as the bot does, where nothing may be wrong with them, and gives what they are to the
// controller.
func export(t *testing.T, files map[string]string, owners []rollout.TextFile) (text, warnings string) {
	var all []rollout.TextFile
	for name, data := range files {
		all = append(all, rollout.TextFile{Path: name, Text: data})
	}
	slices.SortFunc(all, func(a, b rollout.TextFile) int { return strings.Compare(a.Path, b.Path) })
	world, err := index.ReadFiles(all)
	require.NoError(t, err)
	require.Empty(t, world.Problems)
	require.Empty(t, world.Environments[0].Problems)
	var exports []takeover.Export
	for _, s := range world.Environments[0].Deployments {
		if s.Record.Routing == nil {
			_, err := takeover.ToController(s, nil)
			require.ErrorContains(t, err, "has no record")
			continue
		}
		id, _ := rollout.BuildIDFor(s.Spec.Spec, s.Record.Routing.Spec.Versions)
		require.True(t, slices.ContainsFunc(s.Record.Routing.Spec.Versions, func(v v1alpha1.RecordedVersion) bool { return v.BuildID == id }), "the spec asks for a version that runs")
		require.False(t, s.Record.Routing.Edited())
		e, err := takeover.ToController(s, owners)
		require.NoError(t, err)
		exports = append(exports, e)
		warnings += strings.Join(append(e.Warnings, ""), "\n")
	}
	for _, o := range takeover.Objects(exports) {
		text += "---\n" + o.Text
	}
	return text, warnings
}
