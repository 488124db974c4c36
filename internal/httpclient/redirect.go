package httpclient

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// maxRedirects that are followed.
const maxRedirects = 3

// RedirectError is a redirect to another origin, scheme://host:port.
type RedirectError struct{ To string }

func (e *RedirectError) Error() string {
	return "it redirects to " + e.To + ", which is not followed: configure the address that answers"
}

// TooManyRedirectsError is a request that was redirected more than maxRedirects times.
type TooManyRedirectsError struct {
	URL string // what was asked for, without user and query
}

func (e *TooManyRedirectsError) Error() string {
	return fmt.Sprintf("too many redirects: more than %d from %s: configure the address that answers", maxRedirects,
		e.URL)
}

// Within refuses redirects that leave an origin, and too many of them, as the CheckRedirect of an http.Client. Errors:
// *RedirectError, *TooManyRedirectsError.
func Within(origin string) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if to := Origin(req.URL); to != origin {
			return &RedirectError{to}
		}
		if len(via) > maxRedirects {
			first := via[0].URL
			return &TooManyRedirectsError{(&url.URL{Scheme: first.Scheme, Host: first.Host, Path: first.Path}).String()}
		}
		return nil
	}
}

// Origin is scheme://host:port of a URL.
func Origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// Loopback reports whether a host is this one: no other machine is on the way to it.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
