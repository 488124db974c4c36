package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/mail"
	"path"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

const (
	// hydratorFile is where GitOps Promoter looks for the commit that an output was made from, as Argo CD writes it.
	hydratorFile = "hydrator.metadata"
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

// withOrigin adds the commit that asked to the files and the message of a commit, where the environment wants it and it
// is known. Of several it is the last one.
func (r *Reconciler) withOrigin(ctx context.Context, env rollout.EnvironmentWorld, of []*Decision,
	p rollout.CommitPart) rollout.CommitPart {
	if !env.Environment.CD.Hydrator || len(of) == 0 {
		return p
	}
	origin, ok := r.lastOrigin(ctx, of)
	if !ok {
		return p
	}
	dry := dryCommitOf(origin, r.RepositoryURL)
	p.Changes = append(p.Changes[:len(p.Changes):len(p.Changes)],
		rollout.FileChange{Path: hydratorPath(env), Data: dry.file()})
	p.Message += dry.trailers()
	return p
}

// hydratorPath is where hydrator.metadata of an environment is, from the root of the repository.
func hydratorPath(env rollout.EnvironmentWorld) string {
	return path.Join(env.Environment.Output.Path, hydratorFile)
}

// lastOrigin is the last of the commits that asked for what was decided; false: none is known.
func (r *Reconciler) lastOrigin(ctx context.Context, of []*Decision) (last rollout.GitContext, ok bool) {
	var unknown []rollout.Snapshot
	origins := make([]rollout.GitContext, 0, len(of))
	for _, d := range of {
		if d.Snapshot.Git.Commit != "" {
			origins = append(origins, d.Snapshot.Git)
		} else {
			unknown = append(unknown, d.Snapshot)
		}
	}
	if historian, has := r.Source.(Historian); has && len(unknown) > 0 {
		found, err := historian.Origins(ctx, unknown)
		if err != nil {
			r.Log.WarnContext(ctx, "where specs come from could not be read", "error", err)
		}
		origins = append(origins, found...)
	}
	for _, o := range origins {
		if o.Commit != "" && (!ok || o.When.After(last.When)) {
			last, ok = o, true
		}
	}
	return last, ok
}

func dryCommitOf(origin rollout.GitContext, repository string) dryCommit {
	subject, body, _ := strings.Cut(strings.TrimSpace(origin.Message), "\n")
	named, body := takeReference(body)
	dry := dryCommit{
		RepoURL: repository, SHA: origin.Commit, Author: address(origin.Author), Date: origin.When.UTC().Format(time.RFC3339),
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

// trailers end a commit's message. They belong to the last paragraph. Without the body, which is in the file: forges look
// for commands and references in all of a message, and each of the bot's commits would repeat them.
func (c dryCommit) trailers() string {
	var b strings.Builder
	for _, t := range [][2]string{
		{"author", inertAuthor(c.Author)}, {"date", c.Date}, {"subject", printable.Inert(c.Subject)}, {"sha", c.SHA}, {"repourl", c.RepoURL},
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
