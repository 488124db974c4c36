package compose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/mail"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

const (
	// referenceTrailer begins the trailers that Argo CD shows beside a commit.
	referenceTrailer = "Argocd-reference-commit-"
	// maxDryBody is how much of a commit's text is repeated, in characters.
	maxDryBody = 4000
)

// dryCommit is the commit that asked, as Argo CD's hydrator.metadata has it.
type dryCommit struct {
	RepoURL string `json:"repoURL,omitempty"`
	SHA     string `json:"drySha"`
	Author  string `json:"author,omitempty"`
	Date    string `json:"date,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Body is the text after the subject, without the trailers that References are from.
	Body       string      `json:"body,omitempty"`
	References []reference `json:"references,omitempty"`
}

// reference is a commit that the one that asked names, such as that of the code.
type reference struct {
	Commit referencedCommit `json:"commit"`
}

type referencedCommit struct {
	Author  string `json:"author,omitempty"`
	Date    string `json:"date,omitempty"`
	Subject string `json:"subject,omitempty"`
	Body    string `json:"body,omitempty"`
	SHA     string `json:"sha,omitempty"`
	RepoURL string `json:"repoURL,omitempty"`
}

// withOrigin adds to a message the commit that asked, where it is known. It adds to the files the last such commit of
// the push up to there, where it is known.
func withOrigin(env rollout.EnvironmentWorld, repository string, p rollout.CommitPart,
	asked, last rollout.GitContext) rollout.CommitPart {
	if last.Commit != "" {
		file := rollout.FileChange{Path: HydratorPath(env), Data: dryCommitOf(last, repository).file()}
		p.Changes = append(slices.Clip(p.Changes), file)
	}
	if asked.Commit != "" {
		p.Message += dryCommitOf(asked, repository).trailers()
	}
	return p
}

// HydratorPath is where hydrator.metadata of an environment is, from the root of the repository.
func HydratorPath(env rollout.EnvironmentWorld) string {
	return path.Join(env.Environment.Output.Path, layout.Hydrator)
}

// laterOrigin is the one of two commits that came to the branch later, of those that are known.
func laterOrigin(a, b rollout.GitContext) rollout.GitContext {
	if b.Commit != "" && (a.Commit == "" || b.Place > a.Place) {
		return b
	}
	return a
}

func dryCommitOf(origin rollout.GitContext, repository string) dryCommit {
	subject, body, _ := strings.Cut(strings.TrimSpace(origin.Message), "\n")
	named, body := takeReference(body)
	dry := dryCommit{
		RepoURL: repository, SHA: origin.Commit, Author: address(origin.Author),
		Date:    origin.When.UTC().Format(time.RFC3339),
		Subject: printable.Line(subject), Body: cut(printable.Text(strings.TrimSpace(body)), maxDryBody),
	}
	if named != (referencedCommit{}) {
		dry.References = []reference{{named}}
	}
	return dry
}

// address is an author as RFC 5322 has it, which Argo CD reads.
func address(author string) string {
	author = printable.Line(author)
	name, rest, _ := strings.Cut(author, " <")
	a := mail.Address{Name: name, Address: strings.TrimSuffix(rest, ">")}
	if _, err := mail.ParseAddress(author); err == nil {
		return author
	}
	if _, err := mail.ParseAddress(a.String()); err == nil {
		return a.String()
	}
	return ""
}

// takeReference gives the commit that trailers name, and the text without them.
func takeReference(text string) (named referencedCommit, rest string) {
	var left strings.Builder
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
		kind, trailer := strings.CutPrefix(key, referenceTrailer)
		raw, value := value, printable.Line(value)
		switch {
		case !ok || !trailer:
			left.WriteString(line)
		case kind == "author":
			named.Author = value
		case kind == "date":
			named.Date = value
		case kind == "subject":
			named.Subject = value
		case kind == "body":
			var body string
			if json.Unmarshal([]byte(raw), &body) != nil {
				left.WriteString(line)
				break
			}
			named.Body = cut(printable.Text(body), maxDryBody)
		case kind == "sha":
			named.SHA = value
		case kind == "repourl":
			named.RepoURL = value
		default:
			left.WriteString(line)
		}
	}
	return named, left.String()
}

// file is hydrator.metadata, as people read it: <, > and & stay.
func (c dryCommit) file() string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(c); err != nil { // strings only
		return ""
	}
	return b.String()
}

// trailers end a commit's message. They belong to the last paragraph. The body is in the file only: forges look for
// commands and references in all of a message, and each of the bot's commits would repeat them.
func (c dryCommit) trailers() string {
	var b strings.Builder
	for _, t := range [][2]string{
		{"author", inertAuthor(c.Author)}, {"date", c.Date}, {"subject", printable.Inert(c.Subject)},
		{"sha", c.SHA}, {"repourl", c.RepoURL},
	} {
		if t[1] != "" {
			fmt.Fprintf(&b, "%s%s: %s\n", referenceTrailer, t[0], t[1])
		}
	}
	return b.String()
}

// inertAuthor is an author in which only the @ of the address stays; "" where forges take that for a mention.
func inertAuthor(author string) string {
	at := strings.LastIndexByte(author, '@')
	if at < 1 || !isWord(author[at-1]) {
		return ""
	}
	return printable.Inert(author[:at]) + "@" + printable.Inert(author[at+1:])
}

func isWord(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || c == '_'
}
