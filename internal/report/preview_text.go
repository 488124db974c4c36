package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// WriteText prints a preview for a person. Control characters of what others wrote do not reach the terminal, and no
// line begins with a text of others, in which a CI system could find a command.
func (p Preview) WriteText(w io.Writer, style Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, merged %s: %s\n", p.headline(), p.At.UTC().Format(time.RFC3339), style.outcome(p.Outcome))
	for _, problem := range p.Problems {
		fmt.Fprintf(&b, "  %-9s %s\n", strings.ToLower(string(problem.Severity)), oneLine(problem.String()))
	}
	for _, text := range p.Unjudged {
		fmt.Fprintf(&b, "  %-9s %s\n", "unjudged", oneLine(text))
	}
	for _, text := range p.Notes {
		fmt.Fprintf(&b, "  %-9s %s\n", "note", oneLine(text))
	}
	for _, d := range p.Deployments {
		b.WriteString("\n")
		d.write(&b, style)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (p Preview) headline() string {
	return fmt.Sprintf("Preview of %s on %s: %s, %d unchanged", p.Head.text(), p.Base.text(),
		countOf(int64(len(p.Deployments)), "changed worker deployment"), p.Unchanged)
}

// text is a commit as people know it.
func (c Commit) text() string {
	id := c.Commit[:min(len(c.Commit), 12)]
	if c.Name == "" || c.Name == c.Commit {
		return oneLine(id)
	}
	return oneLine(fmt.Sprintf("%s (%s)", c.Name, id))
}

var outcomeWords = map[PreviewOutcome]string{PreviewFine: "no policy objects", PreviewObjected: "policy objects",
	PreviewBroken: "it has errors"}

func (s Style) outcome(o PreviewOutcome) string {
	if o == PreviewFine {
		return s.Good(outcomeWords[o])
	}
	return s.Bad(outcomeWords[o])
}

var changeWords = map[ChangeKind]string{
	ChangeNew: "new", ChangeVersion: "new version", ChangeEarlier: "earlier version", ChangeUpdate: "rolling update",
	ChangeStrategy: "strategy only",
	ChangeNothing:  "nothing rendered", ChangeRetire: "retired", ChangeGone: "spec removed", ChangeBroken: "unusable",
}

func (d Previewed) write(b *strings.Builder, style Style) {
	fmt.Fprintf(b, "worker deployment %s (%s): %s\n", style.paint(bold, oneLine(d.Name)), oneLine(d.Environment),
		changeWords[d.Change])
	line := func(label, text string) { fmt.Fprintf(b, "  %-9s %s\n", label, oneLine(text)) }
	line("", d.Then)
	line("changed", strings.Join(d.Through, ", ")+", "+dash(d.SpecPath))
	if d.From != "" || d.To != "" {
		line("version", dash(d.From)+" -> "+dash(d.To))
	}
	line("record", d.Recorded.words())
	for _, group := range d.groups() {
		for _, f := range group.findings {
			line(group.label, f.text())
		}
	}
	for _, f := range d.Files {
		quote(b, style.diff(f.shown()))
	}
	switch {
	case d.Timetable != nil:
		b.WriteString("  timetable, when all goes well:\n")
		quote(b, TimetableText(*d.Timetable, style))
	case d.Untimed != "":
		line("timetable", "none: "+d.Untimed)
	}
}

// words say where traffic goes by a record.
func (r *RecordedRouting) words() string {
	if r == nil {
		return "none: nothing was rolled out by this branch yet"
	}
	out := fmt.Sprintf("%s; %s in Git", r.text(), countOf(int64(r.Versions), "version"))
	if !r.Since.IsZero() {
		out += "; traffic moved last at " + minute(r.Since)
	}
	return out
}

type findingGroup struct {
	label    string
	findings []PreviewFinding
}

// groups are all findings, the strictest first.
func (d Previewed) groups() []findingGroup {
	return []findingGroup{{"objects", d.Objections}, {"waits", d.Waits}, {"approval", d.Approvals},
		{"warns", d.Warnings}, {"unknown", d.Unknown}}
}

// text is a finding in a line.
func (f PreviewFinding) text() string {
	return strings.Join(slices.DeleteFunc([]string{f.Rule, f.said(), f.Message + f.place()}, func(s string) bool {
		return s == ""
	}), ": ")
}

// said is what a finding does, and when.
func (f PreviewFinding) said() string {
	out := string(f.Effect)
	if f.Action != "" {
		out = strings.TrimSpace(out + " of " + f.Action)
	}
	switch {
	case !f.Until.IsZero():
		out += ", until " + minute(f.Until)
	case !f.From.IsZero() && f.Effect.Strictness() >= rollout.RequireApproval.Strictness():
		out += ", from " + minute(f.From) + " on"
	}
	if f.Waived != "" {
		out += ", waived by " + f.Waived
	}
	return out
}

func (f PreviewFinding) place() string {
	if f.Location == "" {
		return ""
	}
	return " (" + f.Location + ")"
}

// quote prints lines behind a mark, so that no line begins with a text of others.
func quote(b *strings.Builder, text string) {
	for row := range strings.Lines(text) {
		b.WriteString(strings.TrimRight("  | "+row, " \n") + "\n")
	}
}

// shown is a difference as people are shown it, or why it is not.
func (f File) shown() string {
	if f.Diff == "" {
		return fmt.Sprintf("%s %s: %s\n", strings.ToLower(string(f.Op)), printable.Text(f.Path), dash(f.Hidden))
	}
	return bounded(f.Diff, maxShownDiff)
}

// maxShownDiff bounds one difference, in bytes.
const maxShownDiff = 32 << 10

// bounded is the beginning of a difference, with what cannot be seen escaped.
func bounded(diff string, room int) string {
	shown := printable.Text(diff)
	if len(shown) <= room {
		return shown
	}
	at := strings.LastIndex(shown[:room], "\n") + 1
	return shown[:at] + fmt.Sprintf(" and %d more lines\n", strings.Count(shown[at:], "\n"))
}

// WriteAnnotations prints a preview as commands of GitHub Actions, which shows them at the lines of the files.
func (p Preview) WriteAnnotations(w io.Writer) error {
	var b strings.Builder
	for _, problem := range p.Problems {
		level := "error"
		if problem.Severity == v1alpha1.Warning {
			level = "warning"
		}
		annotate(&b, annotation{level, problem.File, problem.Line, problem.Column, "rampart", placeless(problem)})
	}
	for _, text := range p.Unjudged {
		annotate(&b, annotation{level: "warning", title: "not judged by itself", text: text})
	}
	levels := map[string]string{"objects": "error", "warns": "warning"}
	for _, d := range p.Deployments {
		annotate(&b, annotation{"notice", d.SpecPath, d.Line, 0, d.Name + " in " + d.Environment,
			changeWords[d.Change] + ": " + d.Then})
		for _, group := range d.groups() {
			level := cmp.Or(levels[group.label], "notice")
			for _, f := range group.findings {
				annotate(&b, annotation{level, d.SpecPath, cmp.Or(f.Line, d.Line), 0,
					d.Name + ": " + f.Rule + " " + group.label, f.text()})
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// placeless is a problem without the place in a file, which is told beside it.
func placeless(p v1alpha1.Problem) string {
	p = v1alpha1.Problem{Path: p.Path, Message: p.Message, Suggestion: p.Suggestion}
	return strings.TrimPrefix(p.String(), ": ")
}

type annotation struct {
	level, file  string
	line, column int
	title, text  string
}

// Escapes of commands (source: actions/toolkit, packages/core/src/command.ts); the second is the old form of a command,
// which is found anywhere in a line.
var (
	commandText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", "##[", "# #[")
	commandProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C", "##[", "# #[")
)

func annotate(b *strings.Builder, a annotation) {
	properties := []string{}
	add := func(name, value string) { properties = append(properties, name+"="+commandProperty.Replace(value)) }
	if a.file != "" {
		add("file", printable.Text(a.file))
	}
	if a.file != "" && a.line > 0 {
		add("line", fmt.Sprint(a.line))
		if a.column > 0 {
			add("col", fmt.Sprint(a.column))
		}
	}
	add("title", cut(oneLine(a.title), nameRunes))
	fmt.Fprintf(b, "::%s %s::%s\n", a.level, strings.Join(properties, ","),
		commandText.Replace(cut(oneLine(a.text), readRunes)))
}
