package gitlab

import "regexp"

// draftMark begins the title of a draft. The others are of older times.
const draftMark = "Draft:"

var draftMarks = []string{draftMark, "[Draft]", "(Draft)", "WIP:", "[WIP]"}

var (
	command = regexp.MustCompile(`(?m)^([ \t]*)/`)
	escaped = regexp.MustCompile(`(?m)^([ \t]*)\\/`)
)

// inert is Markdown in which no line is a command to GitLab.
func inert(text string) string { return command.ReplaceAllString(text, `$1\/`) }

// plain is what it was before.
func plain(text string) string { return escaped.ReplaceAllString(text, `$1/`) }
