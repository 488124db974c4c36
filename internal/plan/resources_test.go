package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/oracle"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// tmpl is a template called hpa, pdb and so on; what is called hpa scales.
func tmpl(name string, states ...v1alpha1.VersionState) rollout.ResourceTemplate {
	return rollout.ResourceTemplate{Name: name, Path: "workers/" + name + ".yaml", Object: json.RawMessage(fmt.Sprintf(`{"kind":%q}`, name)),
		Hash: "hash-" + name, Versions: states, Scales: strings.HasPrefix(name, "hpa")}
}

// toAll is a template whose object versions that run get, too.
func toAll(name string) rollout.ResourceTemplate {
	t := tmpl(name)
	t.ApplyTo = v1alpha1.AllVersions
	return t
}

// numbered: a version runs with a number of replicas.
func numbered(tag string) change { return func(g *given) { g.version(tag).Replicas = replicas(2) } }

// templates are all that the repository has.
func templates(list ...rollout.ResourceTemplate) change {
	return func(g *given) { g.Resources = slices.Clone(list) }
}

// carries: a version has the objects of templates as they are now.
func carries(tag string, names ...string) change {
	return func(g *given) {
		r := g.version(tag)
		for _, name := range names {
			t := tmpl(name)
			r.Resources = append(r.Resources, v1alpha1.RecordedResource{Template: name, Hash: t.Hash, Scales: t.Scales})
			r.Files[name+".yaml"] = "blob-of-" + name
			g.Record.Files[layout.VersionFile(r.BuildID, name+".yaml")] = rollout.File{Hash: "blob-of-" + name}
			if t.Scales {
				r.Replicas = nil
			}
		}
	}
}

func unusable(name string) rollout.ResourceTemplate {
	return rollout.ResourceTemplate{Name: name, Problem: &rollout.Problem{Reason: rollout.InvalidSpec, Message: name + ".yaml:3: no"}}
}

func missed() change {
	return func(g *given) {
		g.ResourcesProblem = &rollout.Problem{Reason: rollout.InvalidSpec, Message: "a.yaml:1: no YAML"}
	}
}

func askedFor(n *int32) change { return func(g *given) { g.Spec.Spec.Replicas = n } }

// resourceRows keep a version from being created without what the ones before it have.
func resourceRows() []rowCase {
	with := func(c ...change) change { return all(asks("v2"), carries("v1", "hpa"), all(c...)) }
	return []rowCase{
		{row: "resources-unready", name: "cannot be used", given: with(templates(unusable("hpa"))), reason: rollout.InvalidSpec, stalled: true,
			but: templates(tmpl("hpa")), then: "create"},
		{row: "resources-unready", name: "may be in a file that cannot be read", given: with(missed()), reason: rollout.InvalidSpec, stalled: true,
			but: func(g *given) { g.ResourcesProblem = nil }, then: "create"},
		{row: "create", name: "with its objects", given: with(templates(tmpl("hpa"), tmpl("pdb"))), reason: rollout.WaitingForPollers,
			actions: []string{"CreateVersion v2 +hpa +pdb", "UpdateResources v1 +pdb"}, but: wants("v1"), then: "complete"},
		{row: "create", name: "without one that never could be used", given: all(asks("v2"), templates(unusable("hpa"))),
			reason: rollout.WaitingForPollers, actions: []string{"CreateVersion v2 x2"}, but: wants("v1"), then: "complete"},
	}
}

// TestResources: which objects a version gets and loses, and what becomes of its replicas.
func TestResources(t *testing.T) {
	const current, ramping, draining, drainedState = v1alpha1.StateCurrent, v1alpha1.StateRamping, v1alpha1.StateDraining, v1alpha1.StateDrained
	old := all(promoted(100*time.Hour), drained("v1", 90*time.Hour))
	only := func(states ...v1alpha1.VersionState) change { return templates(tmpl("pdb", states...)) }
	for _, c := range []struct {
		name  string
		given change
		want  []string
	}{
		{"a new template", templates(toAll("hpa"), tmpl("pdb")), []string{"UpdateResources v1 +hpa +pdb"}},
		{"a scaler waits for the next version", templates(tmpl("hpa"), tmpl("pdb")), []string{"UpdateResources v1 +pdb"}},
		{"a scaler waits, and the spec has no number any more", all(templates(tmpl("hpa")), askedFor(nil)), nil},
		{"a scaler waits, and the version runs in place of the next", all(custom("v1"), asks("v2"), templates(tmpl("hpa"))), []string{"UpdateVersion v1 Template x2"}},
		{"a scaler comes to the target, which is new", all(asks("v2"), templates(tmpl("hpa"))), []string{"CreateVersion v2 +hpa"}},
		{"a scaler comes to a version without a number", all(templates(tmpl("hpa")), askedFor(nil), func(g *given) { g.version("v1").Replicas = nil }), []string{"UpdateResources v1 +hpa"}},
		{"a template comes to scale", all(templates(tmpl("hpa")), carries("v1", "hpa"), numbered("v1"), func(g *given) {
			g.version("v1").Resources[0].Scales, g.version("v1").Resources[0].Hash = false, "old"
		}), nil},
		{"a scaler that a version has is changed", all(templates(tmpl("hpa")), carries("v1", "hpa"), func(g *given) { g.version("v1").Resources[0].Hash = "old" }), []string{"UpdateResources v1 +hpa"}},
		{"the spec has no number any more", askedFor(nil), nil},
		{"the spec has no number any more, with a scaler for all", all(templates(toAll("hpa")), carries("v1", "hpa"), numbered("v1"), askedFor(nil)), []string{"ScaleVersion v1"}},
		{"the same", all(templates(tmpl("pdb")), carries("v1", "pdb")), nil},
		{"changed", all(templates(tmpl("pdb")), carries("v1", "pdb"), func(g *given) { g.version("v1").Resources[0].Hash = "old" }), []string{"UpdateResources v1 +pdb"}},
		{"gone", carries("v1", "pdb"), []string{"UpdateResources v1 -pdb"}},
		{"gone, perhaps", all(carries("v1", "pdb"), missed()), nil},
		{"cannot be used", all(templates(unusable("pdb")), carries("v1", "pdb")), nil},
		{"cannot be used, and never was", templates(unusable("pdb")), nil},
		{"a scaler came", all(templates(tmpl("hpa")), carries("v1", "hpa"), func(g *given) { g.version("v1").Replicas = replicas(2) }), []string{"ScaleVersion v1"}},
		{"a scaler owns the number", all(templates(tmpl("hpa")), carries("v1", "hpa"), askedFor(replicas(7))), nil},
		{"a scaler went", func(g *given) { g.version("v1").Replicas = nil }, []string{"ScaleVersion v1 x2"}},
		{"a scaler's template cannot be used", all(templates(unusable("hpa")), carries("v1", "hpa"), askedFor(replicas(7))), nil},
		{"the spec asks for none", all(templates(tmpl("hpa"), tmpl("pdb")), carries("v1", "hpa", "pdb"), askedFor(replicas(0))), []string{"UpdateResources v1 -hpa"}},
		{"the spec asks for none, and the scaler is gone", all(templates(tmpl("hpa")), func(g *given) { g.version("v1").Replicas = nil }, askedFor(replicas(0))), []string{"ScaleVersion v1 x0"}},
		{"the spec asks for none, of a draining one too", all(promoted(100*time.Hour), templates(tmpl("hpa")), askedFor(replicas(0)), func(g *given) {
			g.version("v1").Replicas, g.version("v2").Replicas = replicas(0), replicas(0)
		}), nil},
		{"its object is not known", all(templates(rollout.ResourceTemplate{Name: "pdb", Hash: "another"}), carries("v1", "pdb")), nil},
		{"selected: target", all(only(v1alpha1.StateTarget), candidate(), noPollers("v2")), []string{"UpdateResources v2 +pdb"}},
		{"selected: current", all(only(current), candidate(), noPollers("v2")), []string{"UpdateResources v1 +pdb"}},
		{"selected: not any more", all(only(current), promoted(time.Minute), carries("v1", "pdb"), carries("v2", "pdb")), []string{"UpdateResources v1 -pdb"}},
		{"selected: ramping", all(only(ramping), rampsAt(10, time.Minute)), []string{"UpdateResources v2 +pdb"}},
		{"selected: draining", all(only(draining), promoted(time.Minute)), []string{"UpdateResources v1 +pdb"}},
		{"selected: drained", all(only(drainedState), promoted(100*time.Hour), drained("v1", time.Minute)), []string{"UpdateResources v1 +pdb"}},
		{"selected: inactive", all(only(v1alpha1.StateInactive), inactive(time.Hour)), []string{"UpdateResources v1 +pdb"}},
		{"selected: not registered", all(only(v1alpha1.StateNotRegistered), wants("v2"), inGit("v2")), []string{"UpdateResources v2 +pdb"}},
		{"selected: created, and no worker polled", all(only(v1alpha1.StateNotRegistered), candidate(), created("v2")), []string{"UpdateResources v2 +pdb"}},
		{"selected: inactive, but created only", all(only(v1alpha1.StateInactive), inactive(time.Hour), created("v1")), nil},
		{"not known: it keeps what it has", all(only(current), promoted(100*time.Hour), unlisted("v1"), carries("v1", "pdb"), carries("v2", "pdb")), nil},
		{"not known: it gets nothing new", all(only(draining), promoted(100*time.Hour), unlisted("v1")), nil},
		{"not known, for all versions", all(templates(tmpl("pdb")), promoted(100*time.Hour), unlisted("v1"), carries("v2", "pdb")), []string{"UpdateResources v1 +pdb"}},
		{"a draining one keeps its number", all(promoted(100*time.Hour), func(g *given) { g.version("v1").Replicas = nil }), nil},
		{"a draining one gets a scaler", all(templates(toAll("hpa")), promoted(100*time.Hour), carries("v2", "hpa")), []string{"UpdateResources v1 +hpa"}},
		{"a draining one gets no scaler", all(templates(tmpl("hpa")), promoted(100*time.Hour), carries("v2", "hpa")), nil},
		{"a draining one has a scaler", all(templates(tmpl("hpa")), promoted(100*time.Hour), carries("v1", "hpa"), carries("v2", "hpa"), func(g *given) { g.version("v1").Replicas = replicas(2) }), []string{"ScaleVersion v1"}},
		{"scaled down", all(old, templates(tmpl("hpa"), tmpl("pdb")), carries("v1", "hpa", "pdb"), carries("v2", "hpa", "pdb")), []string{"ScaleDown v1 x0 -hpa -pdb"}},
		{"scaled down, while its template is gone", all(old, carries("v1", "pdb")), []string{"ScaleDown v1 x0 -pdb", "UpdateResources v1 -pdb"}},
		{"scaled down, whatever selects it", all(old, scaledDown("v1", time.Minute), only(drainedState)), nil},
		{"restored", all(old, scaledDown("v1", time.Hour), drains("v1"), templates(tmpl("hpa"), tmpl("pdb")), carries("v2", "hpa", "pdb")), []string{"Restore v1 +hpa +pdb"}},
		{"restored from 0 replicas", all(templates(tmpl("pdb")), func(g *given) { g.version("v1").Replicas = replicas(0) }), []string{"Restore v1 x2 +pdb"}},
		{"restored as the target", all(templates(tmpl("hpa")), scaledDown("v1", time.Hour)), []string{"Restore v1 +hpa"}},
		{"restored with a scaler that cannot be used", all(old, scaledDown("v1", time.Hour), drains("v1"), templates(unusable("hpa"))), []string{"Restore v1 x2"}},
		{"beside a new pod template", all(custom("v1"), asks("v2"), templates(tmpl("pdb"))), []string{"UpdateVersion v1 Template x2", "UpdateResources v1 +pdb"}},
		{"beside a new pod template, with a scaler", all(custom("v1"), asks("v2"), templates(tmpl("hpa")), carries("v1", "hpa")), []string{"UpdateVersion v1 Template"}},
		{"beside a step", all(rampsAt(10, time.Hour), templates(tmpl("pdb")), carries("v1", "pdb")), []string{"Ramp v2 10->50 step 2/2", "UpdateResources v2 +pdb"}},
		{"nothing while the spec cannot be used", all(templates(tmpl("pdb")), func(g *given) { g.Connection = nil }), nil},
		{"nothing while Temporal cannot be read", all(templates(tmpl("pdb")), func(g *given) { g.Observation.Exists = "" }), nil},
		{"for the target of somebody else's", all(templates(tmpl("pdb")), candidate(), foreign()), []string{"UpdateResources v2 +pdb"}},
		{"drift goes first", all(templates(tmpl("hpa"), tmpl("pdb")), carries("v1", "hpa"), func(g *given) {
			delete(g.Record.Files, layout.VersionFile(id("v1"), "hpa.yaml"))
		}), []string{"Drift v1 versions/v1/hpa.yaml"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := of(c.given)
			if diff := cmp.Diff(c.want, sayAll(Look(s).Propose().Actions)); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			p := decide(t, twice(s), allowed)
			require.Empty(t, oracle.Forbidden(twice(s), p))
			if len(p.Versions) > 0 {
				require.False(t, p.Settled)
			}
		})
	}
}

// TestResourcesInTheRecord: what is written, and what is written down of it.
func TestResourcesInTheRecord(t *testing.T) {
	old := all(promoted(100*time.Hour), drained("v1", 90*time.Hour))
	hpa, pdb := tmpl("hpa"), tmpl("pdb")
	object := func(t rollout.ResourceTemplate) rollout.ResourceWrite {
		return rollout.ResourceWrite{Template: t.Name, Object: t.Object, Hash: t.Hash, Scales: t.Scales}
	}
	has := func(t rollout.ResourceTemplate) v1alpha1.RecordedResource {
		return v1alpha1.RecordedResource{Template: t.Name, Hash: t.Hash, Scales: t.Scales, Path: t.Path}
	}
	for _, c := range []struct {
		name, tag string
		given     change
		write     rollout.VersionWrite
		have      []v1alpha1.RecordedResource
		files     []string
	}{
		{"created", "v2", all(asks("v2"), templates(hpa, pdb), carries("v1", "hpa", "pdb")),
			rollout.VersionWrite{Op: rollout.RenderVersion, Guard: v1alpha1.GuardOn, Resources: []rollout.ResourceWrite{object(hpa), object(pdb)}},
			[]v1alpha1.RecordedResource{has(hpa), has(pdb)}, nil},
		{"updated", "v1", all(templates(pdb), carries("v1", "hpa")),
			rollout.VersionWrite{Op: rollout.WriteResources, Guard: v1alpha1.GuardOn, Resources: []rollout.ResourceWrite{{Template: "hpa"}, object(pdb)}},
			[]v1alpha1.RecordedResource{has(pdb)}, []string{"deployment.yaml"}},
		{"beside a number", "v1", templates(pdb),
			rollout.VersionWrite{Op: rollout.WriteResources, Replicas: replicas(2), Guard: v1alpha1.GuardOn, Resources: []rollout.ResourceWrite{object(pdb)}},
			[]v1alpha1.RecordedResource{has(pdb)}, []string{"deployment.yaml"}},
		{"with replicas", "v1", all(templates(pdb), askedFor(replicas(5))),
			rollout.VersionWrite{Op: rollout.EditVersion, Replicas: replicas(5), Guard: v1alpha1.GuardOn, Resources: []rollout.ResourceWrite{object(pdb)}},
			[]v1alpha1.RecordedResource{has(pdb)}, []string{"deployment.yaml"}},
		{"scaled down", "v1", all(old, carries("v1", "hpa", "pdb")),
			rollout.VersionWrite{Op: rollout.EditVersion, Replicas: replicas(0), Guard: v1alpha1.GuardOff, Resources: []rollout.ResourceWrite{{Template: "hpa"}, {Template: "pdb"}}},
			nil, []string{"deployment.yaml"}},
		{"restored", "v1", all(old, scaledDown("v1", time.Hour), drains("v1"), templates(hpa)),
			rollout.VersionWrite{Op: rollout.EditVersion, Guard: v1alpha1.GuardOn, Resources: []rollout.ResourceWrite{object(hpa)}},
			[]v1alpha1.RecordedResource{has(hpa)}, []string{"deployment.yaml"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := decide(t, twice(of(c.given)), allowed)
			c.write.BuildID = id(c.tag)
			at := slices.IndexFunc(p.Versions, func(w rollout.VersionWrite) bool { return w.BuildID == id(c.tag) })
			require.GreaterOrEqual(t, at, 0)
			require.Empty(t, cmp.Diff(c.write, p.Versions[at]))
			ver := rollout.FindVersion(p.Record.Versions, id(c.tag))
			require.Equal(t, c.have, ver.Resources)
			require.ElementsMatch(t, c.files, sortedKeys(ver.Files))
			require.Equal(t, c.write.Replicas, ver.Replicas)
		})
	}
}

// TestResourcesAreJudged: policy may hold them, and nothing else waits for that.
func TestResourcesAreJudged(t *testing.T) {
	s := twice(of(promoted(100*time.Hour), drained("v1", 90*time.Hour), carries("v1", "pdb"), templates(tmpl("pdb"), tmpl("net")), askedFor(replicas(5))))
	p := decide(t, s, verdictOn(rollout.UpdateResources, effect(rollout.HoldEffect)))
	require.Equal(t, []string{"ScaleDown v1 x0 -pdb", "ScaleVersion v2 x5"}, sayAll(p.Actions))
	require.Len(t, p.Held, 2)
	require.Equal(t, []string{"scale down v1", "scale v2"}, strings.Split(named(strings.Join(p.Summary, "\n")), "\n"))

	p = decide(t, of(templates(tmpl("pdb")), carries("v1", "hpa")), allowed)
	require.Equal(t, "update objects of v1: without hpa, pdb", named(p.Summary[0]))
}

// TestNeverResources spoils plans that change objects.
func TestNeverResources(t *testing.T) {
	given := all(templates(tmpl("pdb")), carries("v1", "hpa"))
	for name, spoil := range map[string]func(*rollout.Snapshot){
		"gone":         func(s *rollout.Snapshot) { s.Resources = nil },
		"unusable":     func(s *rollout.Snapshot) { s.Resources[0].Problem = &rollout.Problem{} },
		"another":      func(s *rollout.Snapshot) { s.Resources[0].Object = json.RawMessage(`{}`) },
		"missed":       func(s *rollout.Snapshot) { s.ResourcesProblem = &rollout.Problem{} },
		"not readable": func(s *rollout.Snapshot) { s.Resources = append(s.Resources, unusable("hpa")) },
	} {
		t.Run(name, func(t *testing.T) {
			s := of(given)
			p := decide(t, s, allowed)
			spoil(&s)
			require.Len(t, Never(s, p), 1)
		})
	}
}

// TestObjectsThroughARollout: objects come with a version, follow its state, and go with its scale-down. Each costs no
// commit of its own but where a state decides.
func TestObjectsThroughARollout(t *testing.T) {
	w := newWorld(t)
	templates(tmpl("hpa"), tmpl("pdb", v1alpha1.StateCurrent))(w.given)
	w.push("v1")
	w.run(2 * time.Minute)
	require.Equal(t, []string{"create v1", "promote v1", "update objects of v1: pdb"}, w.commits)
	objects := func() string {
		var out []string
		for _, p := range sortedKeys(w.files) {
			if name, ok := strings.CutPrefix(p, dir+"/versions/"); ok {
				out = append(out, named(name))
			}
		}
		return strings.Join(out, " ")
	}
	require.Equal(t, "v1/deployment.yaml v1/hpa.yaml v1/pdb.yaml", objects())
	require.NotContains(t, w.files[dir+"/versions/"+id("v1")+"/deployment.yaml"], "replicas")
	w.quiet(20, time.Hour)

	w.commits = nil
	w.push("v2")
	w.run(2 * 24 * time.Hour)
	require.Equal(t, []string{"create v2", "ramp v2 at 10%", "ramp v2 at 50%", "promote v2", "update objects of v1: without pdb",
		"scale down v1", "remove v1"}, w.commits)
	require.Equal(t, "v2/deployment.yaml v2/hpa.yaml v2/pdb.yaml", objects())

	w.commits = nil
	w.given.Resources = w.given.Resources[1:]
	w.run(time.Minute)
	require.Equal(t, []string{"update objects of v2: without hpa", "scale v2"}, w.commits)
	require.Equal(t, "v2/deployment.yaml v2/pdb.yaml", objects())
	require.Contains(t, w.files[dir+"/versions/"+id("v2")+"/deployment.yaml"], "replicas: 1")
	w.quiet(20, time.Hour)
}

// TestScalerComesWithTheNextVersion: what runs keeps its number while a scaler takes over from the spec.
func TestScalerComesWithTheNextVersion(t *testing.T) {
	w := newWorld(t)
	w.startV1()
	manifest := func(tag string) string { return w.files[dir+"/versions/"+id(tag)+"/deployment.yaml"] }
	templates(tmpl("hpa"))(w.given)
	w.quiet(20, time.Hour)
	w.spec().Replicas = nil
	w.run(time.Minute)
	require.Len(t, w.commits, 1, "the status is about the new spec")
	require.Contains(t, manifest("v1"), "replicas: 1")

	w.commits = nil
	w.push("v2")
	w.run(2 * 24 * time.Hour)
	require.Equal(t, []string{"create v2", "ramp v2 at 10%", "ramp v2 at 50%", "promote v2", "RolloutComplete: v2 is the current version",
		"scale down v1", "remove v1"}, w.commits)
	require.NotContains(t, manifest("v2"), "replicas")
	require.NotEmpty(t, w.files[dir+"/versions/"+id("v2")+"/hpa.yaml"])
	w.quiet(20, time.Hour)
}

// changeTemplates is what people do to templates, and what becomes of their files.
func changeTemplates(t *rapid.T, w *world) {
	some := []v1alpha1.VersionState{v1alpha1.StateTarget, v1alpha1.StateCurrent, v1alpha1.StateRamping, v1alpha1.StateDraining}
	var list []rollout.ResourceTemplate
	for _, name := range []string{"hpa", "pdb"} {
		one := tmpl(name, rapid.SliceOfNDistinct(rapid.SampledFrom(some), 0, 2, rapid.ID[v1alpha1.VersionState]).Draw(t, "states")...)
		one.ApplyTo = rapid.SampledFrom([]v1alpha1.ApplyTo{v1alpha1.NewVersions, v1alpha1.AllVersions}).Draw(t, "applyTo")
		switch rapid.SampledFrom([]string{"there", "gone", "changed", "unusable"}).Draw(t, name) {
		case "there":
			list = append(list, one)
		case "changed":
			one.Object, one.Hash = json.RawMessage(`{"kind":"another"}`), "another"
			list = append(list, one)
		case "unusable":
			list = append(list, unusable(name))
		}
	}
	w.given.Resources, w.given.ResourcesProblem = list, nil
	if rapid.IntRange(0, 3).Draw(t, "missed") == 0 {
		missed()(w.given)
	}
}

// TestUnusableTemplateIsTold: the status tells of a template that cannot be used, also where nothing waits for it.
func TestUnusableTemplateIsTold(t *testing.T) {
	quiet := decide(t, of(templates(tmpl("hpa"))), allowed)
	require.Empty(t, quiet.Status.UnusableTemplates)
	p := decide(t, of(templates(tmpl("hpa"), unusable("pdb")), missed()), allowed)
	require.Equal(t, []v1alpha1.TemplateProblem{{Message: "a.yaml:1: no YAML"}, {Name: "pdb", Message: "pdb.yaml:3: no"}}, p.Status.UnusableTemplates)
	require.Equal(t, string(rollout.RolloutComplete), condition(p.Status, v1alpha1.ConditionReady).Reason, "and it goes on as it did")
	require.NotEqual(t, render.TransitionKey(quiet.Status), render.TransitionKey(p.Status))
	require.Equal(t, render.TransitionKey(p.Status), render.TransitionKey(decide(t, of(templates(tmpl("hpa"), unusable("pdb")), missed()), allowed).Status))
}
