package forge

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/rampart-gitops/rampart/internal/httpclient"
)

// Kind is a kind of forge.
type Kind string

// The kinds of forges.
const (
	KindGitHub Kind = "github"
	KindGitLab Kind = "gitlab"
	KindGitea  Kind = "gitea" // and Forgejo
	KindNone   Kind = "none"
)

// Kinds are all kinds of forges.
func Kinds() []Kind { return []Kind{KindGitHub, KindGitLab, KindGitea, KindNone} }

// Repository is a repository on a forge.
type Repository struct {
	Kind Kind
	// Base is where the forge is: scheme, host, port and path, without a slash at its end.
	Base string
	// Owner is a user or an organization; on GitLab a group, with its parents: "platform/payments".
	Owner string
	Name  string
}

// URL is the repository's page. It holds no credentials.
func (r Repository) URL() string { return r.Base + "/" + r.Owner + "/" + r.Name }

// Folder is the page of a folder or file on a branch, for people; "" where there is no forge.
func (r Repository) Folder(branch, path string) string {
	at := func(s string) string { return strings.ReplaceAll(url.PathEscape(s), "%2F", "/") }
	between := map[Kind]string{KindGitHub: "/tree/", KindGitLab: "/-/tree/", KindGitea: "/src/branch/"}[r.Kind]
	if between == "" {
		return ""
	}
	return strings.TrimSuffix(r.URL()+between+at(branch)+"/"+at(path), "/")
}

// API is the root of the forge's API, without a slash at its end.
func (r Repository) API() string {
	scheme, host, _ := strings.Cut(r.Base, "://")
	switch {
	case r.Kind == KindGitLab:
		return r.Base + "/api/v4"
	case r.Kind == KindGitea:
		return r.Base + "/api/v1"
	case host == hostGitHub || strings.HasSuffix(host, hostGHE):
		return scheme + "://api." + host
	}
	return r.Base + "/api/v3" // GitHub Enterprise Server
}

const (
	hostGitHub = "github.com"
	hostGitLab = "gitlab.com"
	hostGHE    = ".ghe.com" // GitHub Enterprise Cloud with data residency
)

// aliases are hosts that serve Git for another.
var aliases = map[string]string{
	"www.github.com": hostGitHub, "ssh.github.com": hostGitHub, "altssh.gitlab.com": hostGitLab,
	"www.gitlab.com": hostGitLab,
}

// Location is where a repository is said to be.
type Location struct {
	// Clone is the URL that Git clones from: https, http, ssh, user@host:path, file, or an absolute path. Credentials
	// in it are not looked at.
	Clone string
	// Kind is told by the host where it is empty, for github.com and gitlab.com.
	Kind Kind
	// Base is where the forge's pages are, if that is not the host of Clone. It may be another host than that of
	// SSH, or have a port or a path of its own. For Gitea an http clone URL tells it, also when the forge is not at
	// the root. For GitLab it does not, since GitLab has groups in groups.
	Base string
}

// AddressError says that a URL does not tell which forge and which of its repositories is meant.
type AddressError struct {
	URL     string // without credentials
	Problem string
	Hint    string
}

func (e *AddressError) Error() string {
	return fmt.Sprintf("repository %s: %s (%s)", e.URL, e.Problem, e.Hint)
}

// Locate tells the repository that a clone URL is about. It sends no request. Files are KindNone. Errors:
// *AddressError.
func Locate(l Location) (Repository, error) {
	scheme, host, path, err := split(l.Clone)
	if err != nil {
		return Repository{}, err
	}
	bad := func(problem, hint string) (Repository, error) {
		return Repository{}, &AddressError{shown(scheme, host, path), problem, hint}
	}
	if l.Kind == "" {
		l.Kind = kindOf(scheme, host, l.Base)
	}
	switch {
	case l.Kind == "":
		return bad("which forge is at this host is not known", "say github, gitlab, gitea or none")
	case !slices.Contains(Kinds(), l.Kind):
		return bad(fmt.Sprintf("there is no forge %q", l.Kind), "use github, gitlab, gitea or none")
	case l.Kind == KindNone:
		return Repository{Kind: KindNone, Base: shown(scheme, host, path)}, nil
	case scheme == "file":
		return bad("no forge is known by a path", "use the URL that others clone from, or none as forge")
	}
	base, baseErr := l.base(scheme, host)
	if baseErr != "" {
		return bad(baseErr, "use https://host, with a port or a path if there is one")
	}
	segments := strings.Split(strings.Trim(strings.TrimSuffix(strings.TrimRight(path, "/"), ".git"), "/"), "/")
	if strings.HasPrefix(scheme, "http") {
		base, segments = withPath(l, base, segments)
	}
	if len(segments) < 2 || len(segments) > 2 && l.Kind != KindGitLab {
		return bad("its path is not owner/name",
			"check the URL, and the forge's address if it is not at the root of its host")
	}
	if i := slices.IndexFunc(segments, func(s string) bool { return !isName(s) }); i >= 0 {
		return bad("its path has something in it that no owner and no repository is called", "check the URL")
	}
	last := len(segments) - 1
	return Repository{Kind: l.Kind, Base: base, Owner: strings.Join(segments[:last], "/"), Name: segments[last]}, nil
}

// kindOf tells what is known of a host.
func kindOf(scheme, host, base string) Kind {
	if u, err := url.Parse(base); err == nil && base != "" {
		host = strings.ToLower(u.Host)
	}
	name := host
	if u, err := url.Parse("x://" + host); err == nil {
		name = u.Hostname()
	}
	switch {
	case scheme == "file":
		return KindNone
	case name == hostGitHub || strings.HasSuffix(name, hostGHE):
		return KindGitHub
	case name == hostGitLab:
		return KindGitLab
	}
	return ""
}

// base is the forge's address as far as it is known without the path of the clone URL. problem says what is wrong
// with Base or with the host.
func (l Location) base(scheme, host string) (base, problem string) {
	if l.Base != "" {
		u, err := url.Parse(strings.TrimRight(l.Base, "/"))
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil ||
			u.RawQuery != "" || u.Fragment != "" {
			return "", "the forge's address cannot be used"
		}
		u.Host = strings.ToLower(u.Host)
		return u.String(), ""
	}
	if scheme == "ssh" {
		// The port is that of SSH.
		u, err := url.Parse("ssh://" + host)
		if err != nil {
			return "", "its host cannot be used"
		}
		name := u.Hostname()
		if strings.Contains(name, ":") {
			name = "[" + name + "]"
		}
		return "https://" + name, ""
	}
	return scheme + "://" + host, ""
}

// withPath takes the path of the forge from that of an http clone URL.
func withPath(l Location, base string, segments []string) (string, []string) {
	if l.Base != "" {
		u, err := url.Parse(base)
		if err != nil {
			return base, segments // it was parsed before
		}
		root := strings.Split(strings.Trim(u.Path, "/"), "/")
		if len(segments) > len(root) && slices.Equal(segments[:len(root)], root) {
			segments = segments[len(root):]
		}
		return base, segments
	}
	if l.Kind != KindGitea || len(segments) <= 2 {
		return base, segments
	}
	root := len(segments) - 2
	return base + "/" + strings.Join(segments[:root], "/"), segments[root:]
}

// split takes a clone URL apart: its scheme, its host in lower case with a port if there is one, and its path,
// unescaped.
func split(clone string) (scheme, host, path string, err error) {
	bad := func(problem, hint string) (string, string, string, error) {
		return "", "", "", &AddressError{redact(clone), problem, hint}
	}
	if filepath.IsAbs(clone) {
		return "file", "", clone, nil
	}
	if !strings.Contains(clone, "://") {
		authority, path, found := strings.Cut(clone, ":")
		if strings.HasPrefix(authority, "[") || strings.Contains(authority, "@[") { // an IPv6 address
			authority, path, found = strings.Cut(clone, "]:")
			authority += "]"
		}
		host := authority[strings.LastIndexByte(authority, '@')+1:]
		if !found || host == "" || strings.Contains(host, "/") {
			return bad("it is not a URL", "use https, ssh, user@host:path, or an absolute path")
		}
		return "ssh", alias(strings.ToLower(host)), path, nil
	}
	u, parseErr := url.Parse(clone)
	if parseErr != nil { // it repeats the URL, with a password if there is one
		return bad("it is not a URL", "use https, ssh, user@host:path, or an absolute path")
	}
	scheme = strings.ToLower(u.Scheme)
	switch {
	case scheme == "file":
		return scheme, "", u.Path, nil
	case scheme != "https" && scheme != "http" && scheme != "ssh":
		return bad("no forge is reached by its scheme", "use https, http or ssh")
	case u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return bad("it is not a clone URL", "use scheme://host/owner/name.git")
	}
	return scheme, alias(strings.ToLower(u.Host)), u.Path, nil
}

func alias(host string) string {
	name, _, _ := strings.Cut(host, ":")
	if known := aliases[name]; known != "" {
		return known
	}
	return host
}

func shown(scheme, host, path string) string {
	return httpclient.OneLine(scheme+"://"+host+"/"+strings.TrimLeft(path, "/"), maxSaid)
}

// redact leaves out what may be a credential from what may not even be a URL.
func redact(raw string) string {
	return httpclient.OneLine(raw[strings.LastIndexByte(raw, '@')+1:], maxSaid)
}

// isName says whether an owner, a group or a repository can be called so.
func isName(s string) bool {
	if s == "" || s == "." || s == ".." || s[0] == '-' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.+~", r)
	}) < 0
}
