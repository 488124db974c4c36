package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Bounds of a preview's parts in Markdown, in bytes. Together with what one worker deployment takes they stay below
// maxBody.
const (
	maxPreviewList = 9_000
	maxPreviewDiff = 5_000
)

// Markdown is a preview as a comment, or as the summary of a workflow, of at most 65 000 bytes. The parts that
// everybody has to see come first; where there is no room for the details of more worker deployments, they are counted.
func (p Preview) Markdown() string {
	var b strings.Builder
	b.WriteString(p.markdownHead())
	left := 0
	foot := func(n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("\nThe details of %s are left out, since forges bound the size of this text: `rampart "+
			"preview` prints them.\n",
			countOf(int64(n), "more worker deployment"))
	}
	for i, d := range p.Deployments {
		text := d.markdown()
		if b.Len()+len(text)+len(foot(len(p.Deployments))) > maxBody {
			left = len(p.Deployments) - i
			break
		}
		b.WriteString(text)
	}
	b.WriteString(foot(left))
	return b.String()
}

func (p Preview) markdownHead() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Rampart: %s\n\n", map[PreviewOutcome]string{PreviewFine: "no policy objects",
		PreviewObjected: "policy objects", PreviewBroken: "the change has errors"}[p.Outcome])
	fmt.Fprintf(&b, "What merging %s into %s would do: %s, %d unchanged. Judged by what is in %s already.\n\n",
		p.Head.markdown(), p.Base.markdown(),
		are(len(p.Deployments), "worker deployment")+" changed", p.Unchanged, quotedName(p.Base.Name))
	if len(p.Deployments) > 0 {
		t := newGrid("Worker deployment", "Environment", "What", "Version", "Policy", "Rollout, when all goes well")
		for _, d := range p.Deployments[:min(len(p.Deployments), maxRows)] {
			t.row(quotedName(d.Name), quotedName(d.Environment), changeWords[d.Change], d.versions(), d.policy(),
				d.takes())
		}
		b.WriteString(whole(t.b.String()+leftOut(len(p.Deployments)), maxPreviewList) + "\n")
	}
	if len(p.Problems) > 0 {
		t := newGrid("Where", "What is wrong")
		problems := slices.Clone(p.Problems)
		slices.SortStableFunc(problems, func(a, b v1alpha1.Problem) int {
			return strings.Compare(string(a.Severity), string(b.Severity))
		})
		for _, problem := range problems[:min(len(problems), maxRows)] {
			where := problem.File
			if problem.Line > 0 {
				where += fmt.Sprintf(":%d", problem.Line)
			}
			t.row(quotedName(where), strings.ToLower(string(problem.Severity))+": "+
				quoted(placeless(problem), messageRunes))
		}
		b.WriteString(whole(t.b.String()+leftOut(len(problems)), maxPreviewList) + "\n")
	}
	b.WriteString(whole(bullets("**Not judged by itself:** ", p.Unjudged)+bullets("", p.Notes), maxPreviewList))
	return b.String()
}

func bullets(before string, texts []string) string {
	var b strings.Builder
	for _, text := range texts[:min(len(texts), maxRows)] {
		b.WriteString("- " + before + quoted(text, messageRunes) + "\n")
	}
	return b.String()
}

func (c Commit) markdown() string {
	id := "`" + dash(c.Commit[:min(len(c.Commit), 12)]) + "`"
	if c.Name == "" || c.Name == c.Commit {
		return id
	}
	return quotedName(c.Name) + " (" + id + ")"
}

func (d Previewed) versions() string {
	switch {
	case d.To == "" && d.From == "":
		return "-"
	case d.From == d.To || d.From == "":
		return quotedName(d.To)
	case d.To == "":
		return quotedName(d.From)
	}
	return quotedName(d.From) + " → " + quotedName(d.To)
}

// policy is what policies say in a few words.
func (d Previewed) policy() string {
	var out []string
	for _, group := range d.groups() {
		var rules []string
		for _, f := range group.findings {
			if rule := quotedName(f.Rule); !slices.Contains(rules, rule) {
				rules = append(rules, rule)
			}
		}
		if n := len(rules); n > 0 {
			label := group.label
			if label == "objects" {
				label = "**objects**"
			}
			out = append(out, label+": "+strings.Join(rules[:min(n, 3)], ", ")+andMore(n-3))
		}
	}
	switch {
	case d.Change == ChangeBroken:
		return "not judged"
	case len(out) == 0:
		return "no objection"
	}
	return strings.Join(out, "; ")
}

func (d Previewed) takes() string {
	if d.Timetable == nil {
		return "-"
	}
	return oneLine(ended(*d.Timetable))
}

func (d Previewed) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s in %s: %s\n\n%s\n\n", quotedName(d.Name), quotedName(d.Environment),
		changeWords[d.Change], d.Then)
	fmt.Fprintf(&b, "By the record: %s.\n\n", quoted(d.Recorded.words(), messageRunes))
	t := newGrid("", "Rule", "When", "What it says")
	for _, group := range d.groups() {
		for _, f := range group.findings[:min(len(group.findings), maxRows)] {
			t.row(group.label, quotedName(f.Rule)+" "+quotedName(f.Location), quoted(f.said(), nameRunes),
				quoted(f.Message, messageRunes))
		}
	}
	if t.rows > 0 {
		b.WriteString(whole(t.b.String(), maxPreviewList) + "\n")
	}
	if n := len(d.Files); n > 0 {
		var diffs strings.Builder
		for _, f := range d.Files {
			diffs.WriteString(f.shown())
		}
		b.WriteString(foldedText("Manifests: "+countOf(int64(n), "file"),
			fenced("diff", bounded(diffs.String(), maxPreviewDiff))) + "\n")
	}
	if d.Timetable != nil {
		b.WriteString(foldedText("Timetable, when all goes well", goingWell(*d.Timetable)) + "\n")
	} else if d.Untimed != "" {
		b.WriteString("There is no timetable: " + quoted(d.Untimed, messageRunes) + ".\n")
	}
	return b.String()
}

// goingWell is how a rollout goes: a diagram where it is short enough, and how it ends.
func goingWell(t rollout.Timetable) string {
	text := quoted(conclusion(t, Plain), messageRunes) + "\n"
	if chart := Mermaid(t); len(chart) <= maxDiagram {
		text = mermaidFence(chart) + "\n" + text
	}
	return text
}

// fenced is text of others as a block of code. It cannot end the block: the fence is longer than any within.
func fenced(language, text string) string {
	longest, run := 2, 0
	for _, r := range text {
		if r == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	fence := strings.Repeat("`", longest+1)
	return fence + language + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence + "\n"
}
