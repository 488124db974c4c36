package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// previewOf is a preview in which every text that somebody else wrote is s.
func previewOf(s string) Preview {
	at := now
	ramping, share := s, 5.0
	finding := PreviewFinding{Package: s, Rule: s, Effect: rollout.HoldEffect, Message: s, Location: s, Action: s, Line: 4, From: at, Until: at.Add(time.Hour), Waived: s}
	table := rollout.Timetable{Deployment: rollout.Name{Namespace: s, Name: s}, Environment: s, Start: at, End: at.Add(time.Hour), Target: s,
		Outcome: rollout.OutcomeComplete, State: rollout.State{Reason: rollout.RolloutComplete, Message: s},
		Entries: []rollout.TimetableEntry{
			{At: at, Events: []string{s}, Commit: []string{s}, Routing: rollout.RoutingConfig{Current: s, HasRamp: true, Ramping: s + "2", Percentage: 5}, State: rollout.State{Reason: rollout.Ramping},
				Held: []rollout.Held{{Verdict: rollout.Verdict{Effect: rollout.HoldEffect, Findings: []rollout.Finding{{Rule: s, Effect: rollout.HoldEffect, Message: s}}}}}},
			{At: at.Add(time.Hour), After: v1alpha1.Duration{Duration: time.Hour}, Commit: []string{s}, Routing: rollout.RoutingConfig{Current: s + "2"}, State: rollout.State{Reason: rollout.RolloutComplete, Message: s}},
		}}
	p := Preview{Base: Commit{Name: s, Commit: strings.Repeat("b", 40), When: at}, Head: Commit{Name: s, Commit: strings.Repeat("a", 40), When: at}, At: at,
		Problems: []v1alpha1.Problem{{Severity: v1alpha1.Error, File: s, Line: 3, Column: 2, Path: s, Message: s, Suggestion: s}, {Severity: v1alpha1.Warning, File: s, Message: s}},
		Unjudged: []string{s}, Notes: []string{s},
		Deployments: []Previewed{{Environment: s, Name: s, SpecPath: s, Line: 3, Change: ChangeVersion, Through: []string{s}, From: s, To: s + "2", Then: "A new version.",
			Recorded:   &RecordedRouting{Routing: Routing{Current: s, Ramping: &ramping, Percentage: &share}, Since: at, Versions: 2},
			Files:      []File{NewComparison(&rollout.TextFile{Path: s, Text: "a\n" + s + "\n"}, &rollout.TextFile{Path: s, Text: "b\n" + s + "\n" + s}), {Path: s, Op: CreateFile, Hidden: "hidden"}},
			Objections: []PreviewFinding{finding}, Waits: []PreviewFinding{finding}, Approvals: []PreviewFinding{finding}, Warnings: []PreviewFinding{finding}, Unknown: []PreviewFinding{finding},
			Timetable: &table},
			{Environment: s, Name: s, SpecPath: s, Change: ChangeBroken, Through: []string{s}, Then: "It cannot be used.", Untimed: s}}}
	p.Conclude()
	return p
}

// requireHarmlessPreview requires that what others wrote in a preview is code and nothing else.
func requireHarmlessPreview(t require.TestingT, body string) {
	require.LessOrEqual(t, utf8.RuneCountInString(body), 65_536)
	spans, fences := requireInert(t, body)
	for _, span := range spans {
		require.NotRegexp(t, live, "`"+span)
	}
	for _, f := range fences {
		require.Contains(t, []string{"mermaid", "diff"}, f.language)
		if f.language == "mermaid" {
			require.NotRegexp(t, "[@#<`]", f.text)
		}
		require.NotRegexp(t, `[\p{Cf}\x00-\x08\x0b-\x1f\x7f-\x9f]`, f.text)
	}
}

func TestPreviewOfHostileTexts(t *testing.T) {
	for _, part := range []string{evil, "`", "```", "````\n", "\n```\n", "|", "@team", "#12", "http://e.example", "<b>x</b>", "</details>", "\n\n# x\n\n", "[x](javascript:alert(1))",
		"\u202e", "\x00", "\x1b[31m", "\r\n::add-mask::x", "\xff", "%0A::error::x", "##[add-mask]x"} {
		requireHarmlessPreview(t, previewOf(sentinel+part+sentinel).Markdown())
		requireHarmlessPreview(t, previewOf(part).Markdown())
		requireNoCommands(t, previewOf(part))
	}
	piece := rapid.OneOf(rapid.String(), rapid.SampledFrom(strings.Split("` `` ``` ```` \\ | @ # ! [ ] < > / - * _ ~ : :: %0A %3A , ::error:: ##[ http:// details \n \r \t \u202e", " ")))
	rapid.Check(t, func(t *rapid.T) {
		p := previewOf(strings.Join(rapid.SliceOfN(piece, 1, 12).Draw(t, "text"), "") + sentinel)
		requireHarmlessPreview(t, p.Markdown())
		requireNoCommands(t, p)
	})
}

// requireNoCommands reads what is printed as GitHub's runner does: each annotation is one command with the properties
// that are meant, and the text has none.
func requireNoCommands(t require.TestingT, p Preview) {
	var b bytes.Buffer
	require.NoError(t, p.WriteAnnotations(&b))
	want := len(p.Problems) + len(p.Unjudged) + len(p.Deployments) + 5
	require.Equal(t, want, strings.Count(b.String(), "\n"), b.String())
	for line := range strings.Lines(b.String()) {
		require.Regexp(t, `^::(error|warning|notice) (file=[^,:\r\n]*,)?(line=\d+,)?(col=\d+,)?title=[^,:\r\n]*::[^\r\n]*\n$`, line)
		require.NotContains(t, line, "##[")
	}
	b.Reset()
	require.NoError(t, p.WriteText(&b, Plain))
	require.NotRegexp(t, `[\x00-\x08\x0b-\x1f\x7f-\x9f]`, b.String())
	for line := range strings.Lines(b.String()) {
		require.False(t, strings.HasPrefix(strings.TrimSpace(line), "::"), line)
	}
}

// However much a change does, a forge takes the text, what everybody has to see is in it, and what is left out is
// counted.
func TestPreviewIsBounded(t *testing.T) {
	p := previewOf(strings.Repeat("€", 5000))
	for i := range 300 {
		d := p.Deployments[0]
		d.Name = fmt.Sprintf("payments/w%d", i)
		p.Deployments = append(p.Deployments, d)
		p.Problems = append(p.Problems, p.Problems...)[:min(2*len(p.Problems), 5000)]
	}
	p.Conclude()
	body := p.Markdown()
	requireHarmlessPreview(t, body)
	require.LessOrEqual(t, len(body), maxBody+1000)
	require.Contains(t, body, "## Rampart: the change has errors")
	require.Regexp(t, `The details of \d+ more worker deployments are left out`, body)
	require.Equal(t, body, p.Markdown())
}

func TestPreviewOutcomes(t *testing.T) {
	p := Preview{Deployments: []Previewed{{Waits: []PreviewFinding{{Rule: "a"}}, Unknown: []PreviewFinding{{Rule: "b"}}, Approvals: []PreviewFinding{{Rule: "c"}}}}}
	p.Problems = []v1alpha1.Problem{{Severity: v1alpha1.Warning}}
	p.Conclude()
	require.Equal(t, PreviewFine, p.Outcome)
	p.Deployments[0].Objections = []PreviewFinding{{Rule: "d"}}
	p.Conclude()
	require.Equal(t, PreviewObjected, p.Outcome)
	p.Problems[0].Severity = v1alpha1.Error
	p.Conclude()
	require.Equal(t, PreviewBroken, p.Outcome)
}

// What a Secret holds is in no format.
func TestPreviewOfSecrets(t *testing.T) {
	for _, manifest := range []string{"apiVersion: v1\nkind: Secret\ndata: {a: aHVudGVyMg==}\n", "kind: 'Secret' # x\ndata: {a: aHVudGVyMg==}\n",
		"{\"data\": {\"a\": \"aHVudGVyMg==\"}, \"kind\": \"Secret\"}\n", "kind: List\nitems: [{kind: Secret, data: {a: aHVudGVyMg==}}]\n"} {
		for _, f := range []File{NewComparison(nil, &rollout.TextFile{Path: "s.yaml", Text: manifest}), NewComparison(&rollout.TextFile{Path: "s.yaml", Text: manifest}, nil),
			NewComparison(&rollout.TextFile{Path: "s.yaml", Text: manifest}, &rollout.TextFile{Path: "s.yaml", Text: "kind: Other\n"})} {
			require.Empty(t, f.Diff, manifest)
			require.NotEmpty(t, f.Hidden)
		}
	}
	f := NewComparison(nil, &rollout.TextFile{Path: "d.yaml", Text: "kind: Deployment\nsecretKeyRef: {name: a}\n"})
	require.Contains(t, f.Diff, "+kind: Deployment")
	require.Equal(t, CreateFile, f.Op)
	require.Equal(t, DeleteFile, NewComparison(&rollout.TextFile{Path: "d.yaml", Text: "x\n"}, nil).Op)
}

// TestPreviewGolden shows all formats as they are read.
func TestPreviewGolden(t *testing.T) {
	p := previewOf("v1")
	var plain, annotations bytes.Buffer
	require.NoError(t, p.WriteText(&plain, Plain))
	require.NoError(t, p.WriteAnnotations(&annotations))
	golden(t, "preview", txtar.File{Name: "text", Data: plain.Bytes()}, txtar.File{Name: "markdown", Data: []byte(p.Markdown())},
		txtar.File{Name: "annotations", Data: annotations.Bytes()})
}
