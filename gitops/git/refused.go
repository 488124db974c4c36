package git

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
)

// Refused reports whether the repository is there for others and not for these credentials, or is not there any more.
// That is so if the server does not accept the credentials, they lack the right, or there is no such repository. A
// server that is away, broken or too busy does not refuse.
func (e *AccessError) Refused() bool {
	switch e.Reason {
	case ReasonUnauthorized, ReasonForbidden:
		return true
	case ReasonNotFound:
		return errors.Is(e.Err, transport.ErrRepositoryNotFound) || errors.Is(e.Err, fs.ErrNotExist) ||
			saysGone(e.Detail)
	case ReasonCredentials: // their issuer may refuse them
		var issuer interface{ Refused() bool }
		return errors.As(e.Err, &issuer) && issuer.Refused()
	}
	return false
}

// goneWords are in what git and the SSH servers of forges say of a repository that is not there, or not for this
// key. They are in lower case. Git and these servers have no code for it, and end the conversation in the same way
// when something else is wrong.
var goneWords = []string{"not found", "does not exist", "not exist", "does not appear to be a git repository",
	"could not be found", "access denied", "permission denied"}

func saysGone(said string) bool {
	said = strings.ToLower(said)
	for _, words := range goneWords {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}

// rateLimitError is an answer that says to ask less often.
type rateLimitError struct {
	status int
	after  string // what the server says of when to come back; may be empty
}

func (e *rateLimitError) Error() string {
	return fmt.Sprintf("HTTP %d %s", e.status, http.StatusText(e.status))
}

// rateLimitHeaders hold what is left of a limit, and how long to wait: of GitHub, GitLab, Gitea and Bitbucket, and of
// proxies.
var rateLimitHeaders = []string{"X-RateLimit-Remaining", "RateLimit-Remaining"}

// rateLimited gives the error of an answer that says to ask less often; nil: it does not. GitHub says so with the
// status of a missing right.
func rateLimited(resp *http.Response) error {
	limited := resp.StatusCode == http.StatusTooManyRequests
	if resp.StatusCode == http.StatusForbidden {
		limited = resp.Header.Get("Retry-After") != ""
		for _, name := range rateLimitHeaders {
			limited = limited || resp.Header.Get(name) == "0"
		}
	}
	if !limited {
		return nil
	}
	return &rateLimitError{status: resp.StatusCode, after: cleanText(resp.Header.Get("Retry-After"))}
}
