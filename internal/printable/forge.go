package printable

import (
	"regexp"
	"strings"
)

// What means something to a forge in a commit message.
var (
	closingWord = regexp.MustCompile(`(?i)\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|` +
		`implement(?:s|ed|ing)?)\b:?\s`)
	trackerKey = regexp.MustCompile(`([A-Z]\w*)-(\d)`) // an issue of another tracker, after a word that closes it
	issueKey   = regexp.MustCompile(`(?i)\b(gh)-(\d)`) // an issue, as GitHub knows it
	numbered   = regexp.MustCompile(`[!&~$%]\d`)       // GitLab: merge requests, epics, labels, snippets, milestones
	skipping   = regexp.MustCompile(`(?i)\[(skip|ci|no|actions)\b`)
	lookalike  = strings.NewReplacer("@", "＠", "#", "＃", "://", ": //", "***", "* * *")
	wide       = strings.NewReplacer("!", "！", "&", "＆", "~", "～", "$", "＄", "%", "％")
)

// Inert is text in which a forge finds no mention, reference, link or command, such as to skip its pipelines. A sign is
// replaced by one that looks like it.
func Inert(s string) string {
	s = lookalike.Replace(s)
	if closingWord.MatchString(s) {
		s = trackerKey.ReplaceAllString(s, "$1\u2011$2")
	}
	s = issueKey.ReplaceAllString(s, "$1\u2011$2")
	s = numbered.ReplaceAllStringFunc(s, wide.Replace)
	return skipping.ReplaceAllString(s, "[ $1")
}
