package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// newer writes a routing.yaml as a release does that knows fields which no release has yet.
func newer(t require.TestingT, r v1alpha1.Routing, add func(routing, spec map[string]any)) string {
	data, err := json.Marshal(r)
	require.NoError(t, err)
	v, err := v1alpha1.DecodeJSON(data)
	require.NoError(t, err)
	routing := v.(map[string]any)
	spec := routing["spec"].(map[string]any)
	add(routing, spec)
	routing["metadata"].(map[string]any)["annotations"].(map[string]any)[v1alpha1.AnnotationRoutingDigest] = sealOf(t, spec)
	out, err := YAML(routing)
	require.NoError(t, err)
	return string(out)
}

// sealOf is the digest of a spec by what is written alone, whatever is known of it.
func sealOf(t require.TestingT, spec any) string {
	data, err := json.Marshal(spec)
	require.NoError(t, err)
	data, err = v1alpha1.CanonicalJSON(data)
	require.NoError(t, err)
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func tree(t require.TestingT, text string) (routing, spec map[string]any) {
	v, err := parseManifest(text)
	require.NoError(t, err)
	return v, v["spec"].(map[string]any)
}

// readRecord reads a routing.yaml as the bot does.
func readRecord(t require.TestingT, text string) *v1alpha1.Routing {
	documents, problems := v1alpha1.Decode(layout.Routing, []byte(text))
	require.False(t, v1alpha1.HasErrors(problems), "%v\n%s", problems, text)
	require.Len(t, documents, 1)
	return documents[0].Object.(*v1alpha1.Routing)
}

// future adds fields to all that a record has.
func future(routing, spec map[string]any) {
	routing["audit"] = map[string]any{"by": "a newer release", "zero": json.Number("0")}
	spec["shards"] = []any{json.Number("1"), map[string]any{"a": nil}, "x"}
	spec["soak"] = map[string]any{"until": "later", "off": false, "empty": ""}
	for _, name := range []string{"desired", "decided", "target", "hold", "retire"} {
		if object, ok := spec[name].(map[string]any); ok {
			object["note"] = "of this " + name
		}
	}
	for _, name := range []string{"versions", "bars", "promotions", "setAside"} {
		list, _ := spec[name].([]any)
		for _, item := range list {
			object := item.(map[string]any)
			object["note"] = fmt.Sprint(name, " of ", object["buildID"])
		}
	}
}

// futureScene is a worker deployment whose record a newer release wrote.
func futureScene(t *testing.T) *scene {
	s := newScene(t, checkoutSpec, noAuth())
	s.commit()
	s.ask(with(checkoutSpec, "checkout:v2.3.0", "checkout:v2.4.0"))
	one, two := s.plan.Record.Versions[0].BuildID, s.plan.Record.Versions[1].BuildID
	s.plan.Record.Desired = v1alpha1.DesiredRouting{Current: one, Ramping: &v1alpha1.DesiredRamp{BuildID: two, Percentage: 10}}
	s.plan.Record.Bars = []v1alpha1.Bar{{BuildID: two, TemplateHash: "aa", By: "ada", Reason: "r", At: epoch}}
	s.plan.Record.Promotions = []v1alpha1.Promotion{{BuildID: one, At: at(1), LeftAt: at(2), LeftBy: v1alpha1.LeftByPromotion}, {BuildID: two, At: at(2)}, {BuildID: one, At: at(3)}}
	s.plan.Record.SetAside = []v1alpha1.SetAside{{BuildID: one, Reason: "r", At: epoch}}
	s.plan.Record.Hold = &v1alpha1.Hold{Kind: v1alpha1.HoldManual, By: "ada", Reason: "lunch", At: epoch}
	s.commit()
	text := newer(t, *s.record.Routing, future)
	s.put(layout.Routing, text)
	s.record.Routing = readRecord(t, text)
	require.False(t, s.record.Routing.Edited(), "a newer release's seal fits")
	require.Equal(t, s.plan.Record.Desired, s.record.Routing.Spec.Desired)
	return s
}

// An older release leaves such a record as it is while nothing changes.
func TestFieldsOfANewerReleaseAreNoChange(t *testing.T) {
	s := futureScene(t)
	require.Empty(t, must(Files(s.plan, s.record)))
	again, err := routingText(s.record.Routing)
	require.NoError(t, err)
	require.Equal(t, s.record.Files[layout.Routing].Data, again, "byte for byte")
}

// Each field stays with what it is about, for as long as that is the same.
func TestFieldsOfANewerReleaseAreKept(t *testing.T) {
	s := futureScene(t)
	before := s.record.Files[layout.Routing].Data
	next := *s.plan.Record
	slices.Reverse(next.Versions)
	next.Bars = append(next.Bars, v1alpha1.Bar{BuildID: "other", By: "ada", Reason: "r", At: epoch})
	next.Hold = &v1alpha1.Hold{Kind: v1alpha1.HoldManual, By: "bob", Reason: "dinner", At: at(9)}
	next.Desired.Ramping = nil
	next.Promotions = append(slices.Clone(next.Promotions[1:]), v1alpha1.Promotion{BuildID: next.Versions[0].BuildID, At: at(9)})
	next.SetAside = nil
	s.plan.Record = &next
	changes := must(Files(s.plan, s.record))
	require.Len(t, changes, 1)
	routing, spec := tree(t, changes[0].Data)
	_, was := tree(t, before)
	require.Equal(t, map[string]any{"by": "a newer release", "zero": json.Number("0")}, routing["audit"])
	require.Equal(t, was["shards"], spec["shards"])
	require.Equal(t, was["soak"], spec["soak"])
	require.Equal(t, "of this target", spec["target"].(map[string]any)["note"])
	require.NotContains(t, spec["hold"], "note", "another hold")
	require.NotContains(t, spec["desired"], "note", "another routing")
	require.NotContains(t, spec, "setAside")
	notes := func(name string) (out []any) {
		for _, item := range spec[name].([]any) {
			out = append(out, item.(map[string]any)["note"])
		}
		return out
	}
	one, two := next.Versions[1].BuildID, next.Versions[0].BuildID
	require.Equal(t, []any{"versions of " + two, "versions of " + one}, notes("versions"))
	require.Equal(t, []any{"bars of " + two, nil}, notes("bars"))
	require.Equal(t, []any{"promotions of " + two, "promotions of " + one, nil}, notes("promotions"))
	require.Equal(t, sealOf(t, spec), routing["metadata"].(map[string]any)["annotations"].(map[string]any)[v1alpha1.AnnotationRoutingDigest])
	require.False(t, readRecord(t, changes[0].Data).Edited())
}

// Another target is not what a field was about, another attempt neither.
func TestFieldsOfANewerReleaseAreOfTheirTarget(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.RoutingTarget){
		"another build":    func(t *v1alpha1.RoutingTarget) { t.BuildID = "other" },
		"another template": func(t *v1alpha1.RoutingTarget) { t.TemplateHash = "other" },
		"another attempt":  func(t *v1alpha1.RoutingTarget) { t.Attempt++ },
	} {
		s := futureScene(t)
		target := *s.plan.Record.Target
		change(&target)
		s.plan.Record.Target = &target
		_, spec := tree(t, must(Files(s.plan, s.record))[0].Data)
		require.NotContains(t, spec["target"], "note", name)
		require.Contains(t, spec["desired"], "note", name)
	}
}

// A snapshot that was written down has them, too, and so has a proposal.
func TestFieldsOfANewerReleaseTravel(t *testing.T) {
	s := futureScene(t)
	data, err := json.Marshal(rollout.Snapshot{Record: s.record})
	require.NoError(t, err)
	var again rollout.Snapshot
	require.NoError(t, json.Unmarshal(data, &again))
	require.False(t, again.Record.Routing.Edited())
	require.Empty(t, must(Files(s.plan, again.Record)))

	asked, err := Proposed([]byte(s.record.Files[layout.Routing].Data), rollout.ReviewAsk{Desired: &v1alpha1.DesiredRouting{Current: "v3"}})
	require.NoError(t, err)
	_, spec := tree(t, string(asked))
	_, was := tree(t, s.record.Files[layout.Routing].Data)
	delete(spec, "desired")
	delete(was, "desired")
	require.Equal(t, was, spec)
}

// Whatever a newer release adds, wherever it does, a record that is read is written again byte for byte, and keeps its
// seal.
func TestFieldsOfANewerReleaseAnywhere(t *testing.T) {
	s := futureScene(t)
	plain := readRecord(t, s.record.Files[layout.Routing].Data)
	plain.Whole = nil
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SampledFrom([]any{"", "text", json.Number("0"), json.Number("1.5"), true, false, []any{}, map[string]any{}, []any{map[string]any{"a": ""}},
			map[string]any{"buildID": "x", "current": "y"}})
		text := newer(t, *plain, func(routing, _ map[string]any) {
			var walk func(v any)
			walk = func(v any) {
				switch v := v.(type) {
				case map[string]any:
					for _, key := range slices.Sorted(maps.Keys(v)) {
						if key != "files" && key != "annotations" {
							walk(v[key])
						}
					}
					if rapid.IntRange(0, 2).Draw(t, "here") == 0 {
						v[rapid.SampledFrom([]string{"zzz", "Quorum", "soakUntil9"}).Draw(t, "name")] = value.Draw(t, "value")
					}
				case []any:
					for _, item := range v {
						walk(item)
					}
				}
			}
			walk(routing)
		})
		r := readRecord(t, text)
		require.False(t, r.Edited())
		again, err := routingText(r)
		require.NoError(t, err)
		require.Equal(t, text, again)
		r.Seal()
		again, err = routingText(r)
		require.NoError(t, err)
		require.Equal(t, text, again)
	})
}
