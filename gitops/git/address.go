package git

import (
	"cmp"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
)

// address is a repository's URL taken apart. Only display may be shown.
type address struct {
	scheme         string // "file", "http", "https" or "ssh"
	user, password string
	host           string // without brackets
	port           int    // zero: the scheme's own
	path           string
	display        string // the URL without credentials
}

// parseAddress takes file:///path, an absolute path, http(s)://, ssh:// and user@host:path. Errors:
// *AccessError.
func parseAddress(raw string) (address, error) {
	bad := func(hint string) error {
		return &AccessError{Op: "open", URL: redact(raw), Reason: ReasonAddress, Hint: hint}
	}
	if raw == "" {
		return address{}, bad("the repository's URL is empty")
	}
	if !strings.Contains(raw, ":") && !filepath.IsAbs(raw) {
		return address{}, bad("use an absolute path, or a URL")
	}
	ep, err := transport.NewEndpoint(raw)
	if err != nil {
		return address{}, bad("it cannot be parsed") // the parser's error repeats the URL with its password
	}
	a := address{
		scheme: strings.ToLower(ep.Protocol), user: ep.User, password: ep.Password,
		host: strings.Trim(ep.Host, "[]"), port: ep.Port, path: ep.Path,
	}
	switch a.scheme {
	case "file":
		if ep.Host != "" {
			return address{}, bad("file URLs have three slashes: file:///path")
		}
	case "http", "https":
		// The endpoint's path is unescaped, and is put into a URL again.
		if u, err := url.Parse(raw); err == nil {
			a.path = u.EscapedPath()
		}
		a.path = strings.TrimRight(a.path, "/")
	case "ssh":
		if a.password != "" || strings.Contains(a.user, ":") { // user:password@host:path, or before https://
			return address{}, bad("SSH takes a key, not a password in the URL")
		}
		a.user = cmp.Or(a.user, "git")
	default:
		return address{}, bad("use https, ssh or file")
	}
	if a.scheme != "file" && a.host == "" {
		return address{}, bad("it names no host")
	}
	if strings.Trim(a.path, "/") == "" {
		return address{}, bad("it names no repository")
	}
	a.display = a.show()
	return a, nil
}

// PathAtServer is the path of a repository at its server, unescaped, without slashes around it and without .git:
// "team/workers". It is "" for one on this machine's disk, and for what Open would refuse.
func PathAtServer(raw string) string {
	a, err := parseAddress(raw)
	if err != nil || a.scheme == "file" {
		return ""
	}
	path := a.path
	if a.scheme != "ssh" {
		if path, err = url.PathUnescape(a.path); err != nil {
			return ""
		}
	}
	return strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

func (a address) show() string {
	switch a.scheme {
	case "file":
		return "file://" + a.path
	case "ssh":
		return "ssh://" + a.user + "@" + a.hostPort() + "/" + strings.TrimPrefix(a.path, "/")
	}
	return a.scheme + "://" + a.hostPort() + a.path
}

// hostPort is the host as URLs have it, with the port where one was given.
func (a address) hostPort() string {
	if a.port == 0 || a.scheme == "ssh" && a.port == 22 {
		if strings.Contains(a.host, ":") {
			return "[" + a.host + "]"
		}
		return a.host
	}
	return net.JoinHostPort(a.host, strconv.Itoa(a.port))
}

// isLoopback says whether what is sent to the host stays on this machine.
func (a address) isLoopback() bool {
	if a.host == "localhost" {
		return true
	}
	ip := net.ParseIP(a.host)
	return ip != nil && ip.IsLoopback()
}

// redact removes what may be a credential from a URL that may not even be one.
func redact(raw string) string {
	scheme, rest, found := strings.Cut(raw, "://")
	if !found || strings.Contains(scheme, "@") { // me:password@https://host has no scheme
		scheme, rest, found = "", raw, false
	} else {
		scheme += "://"
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 && found {
		authority = rest[:i]
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		rest = rest[i+1:]
	} else if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = rest[i+1:] // a password with a slash in it
	}
	return cleanText(scheme + rest)
}
