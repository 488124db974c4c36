package bundle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/internal/httpclient"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// Defaults of a Config.
const (
	DefaultInterval = time.Minute
	DefaultTimeout  = 10 * time.Second
	DefaultMaxAge   = 24 * time.Hour
)

// Config says where policies come from. All of it is the bot's own, never a repository's.
type Config struct {
	// Dirs are directories of policies, read again every Interval.
	Dirs []string
	// Bundles to download.
	Bundles []Bundle
	// Keys verify bundles: each has to be signed with one of them.
	Keys []Key
	// Signatures says whether bundles have to be signed. There is no default: see Signed and Unsigned.
	Signatures Signatures
	// PlainHTTP says which servers may be spoken to without TLS; "": LoopbackOnly.
	PlainHTTP PlainHTTP
	// CAFile holds the authorities, in PEM, to trust beside the system's; "": none.
	CAFile string
	// CacheDir is where the last good bundles are kept; it may be deleted at any time. "": nowhere.
	CacheDir string
	// Interval between two polls; 0: DefaultInterval.
	Interval time.Duration
	// Timeout of one download; 0: DefaultTimeout.
	Timeout time.Duration
	// MaxAge is how long a bundle's fact is good without its server confirming it; 0: DefaultMaxAge.
	MaxAge time.Duration
	// Proxy chooses a proxy; nil: none. http.ProxyFromEnvironment is the usual one.
	Proxy func(*http.Request) (*url.URL, error)
	// Compile says what is broken in policies; nil: they are compiled in this process.
	Compile Compile
	Log     *slog.Logger
	// Now gives the time.
	Now func() time.Time
}

// Compile compiles policies, and gives what is broken in them.
type Compile func(policy.Config) []parse.Problem

// Bundle is one bundle and where it is.
type Bundle struct {
	// Name is for messages and facts: lower-case letters, digits and hyphens.
	Name string
	// URL of the archive, https://; http:// as PlainHTTP says. It may have a query, which is not shown.
	URL string
	// Token gives a bearer token each time one is needed; nil: none. It goes to the URL's host alone.
	Token func(context.Context) (string, error)
	// Scope that the signature has to name; "": that it names none.
	Scope string
}

// Signatures says whether bundles have to be signed.
type Signatures string

// The ways with signatures. Signed needs keys, Unsigned forbids them.
const (
	Signed   Signatures = "signed"
	Unsigned Signatures = "unsigned"
)

// PlainHTTP says which servers may be spoken to without TLS.
type PlainHTTP string

// The servers without TLS.
const (
	LoopbackOnly PlainHTTP = "loopback"
	AnyHost      PlainHTTP = "any"
)

const maxNameLength = 63

var nameShape = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// filled is the configuration with its defaults, checked.
func (c Config) filled() (Config, error) {
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
		what     string
	}{{&c.Interval, DefaultInterval, "interval"}, {&c.Timeout, DefaultTimeout, "time limit"}, {&c.MaxAge, DefaultMaxAge,
		"maximal age"}} {
		switch {
		case *d.value < 0:
			return c, fmt.Errorf("the %s of policy bundles is negative: %s", d.what, *d.value)
		case *d.value == 0:
			*d.value = d.standard
		}
	}
	if c.Compile == nil {
		c.Compile = func(cfg policy.Config) []parse.Problem { return policy.Compile(cfg).Problems() }
	}
	if c.PlainHTTP == "" {
		c.PlainHTTP = LoopbackOnly
	}
	if len(c.Bundles) == 0 {
		return c, nil
	}
	switch {
	case c.Signatures != Signed && c.Signatures != Unsigned:
		return c, errors.New("say whether policy bundles have to be signed")
	case c.Signatures == Signed && len(c.Keys) == 0:
		return c, errors.New("policy bundles have to be signed, and there is no key to verify them with")
	case c.Signatures == Unsigned && len(c.Keys) > 0:
		return c, errors.New("there is a key to verify policy bundles with, and unsigned ones are allowed: only one " +
			"of both can be")
	}
	var names []string
	for _, b := range c.Bundles {
		if err := c.check(b); err != nil {
			return c, fmt.Errorf("policy bundle %q: %w", b.Name, err)
		}
		if slices.Contains(names, b.Name) {
			return c, fmt.Errorf("policy bundle %q is given twice", b.Name)
		}
		names = append(names, b.Name)
	}
	return c, nil
}

func (c Config) check(b Bundle) error {
	if len(b.Name) > maxNameLength || !nameShape.MatchString(b.Name) {
		return fmt.Errorf("a name has lower-case letters, digits and hyphens, %d at most", maxNameLength)
	}
	u, err := parseURL(b.URL)
	if err != nil {
		return err
	}
	switch far := u.Scheme == "http" && !httpclient.Loopback(u.Hostname()); {
	case far && c.PlainHTTP != AnyHost:
		return fmt.Errorf("%s is plain HTTP, over which anybody on the way could change what is allowed: "+
			"expected https", shown(u))
	case far && b.Token != nil:
		return fmt.Errorf("%s is plain HTTP, over which anybody on the way could read the token: expected https",
			shown(u))
	case far && c.Signatures == Unsigned:
		return fmt.Errorf("%s is plain HTTP, and the bundle need not be signed: anybody on the way could change it",
			shown(u))
	}
	return nil
}

// parseURL does not repeat what it cannot read, which may hold a password.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("read the URL: expected http or https and a host, such as " +
			"https://example.com/bundle.tar.gz")
	case u.User != nil:
		return nil, fmt.Errorf("%s holds a user: credentials come from a file or a variable", shown(u))
	case u.Fragment != "":
		return nil, fmt.Errorf("%s has a fragment, which no server gets: remove it from the #", shown(u))
	}
	return u, nil
}

// shown is a URL without what may be secret in it.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// Origin is scheme://host:port of a bundle's URL, "" if it has none.
func (b Bundle) Origin() string {
	u, err := parseURL(b.URL)
	if err != nil {
		return ""
	}
	return httpclient.Origin(u)
}
