package forge

import (
	"net/http"
	"strconv"
	"time"
)

const (
	defaultPause = time.Minute // what GitHub asks for where it says nothing else
	maxPause     = time.Hour   // its longest window; a server cannot stop the bot for longer
)

// limit tells until when a forge wants to be left alone: 429; or 403 or 503 with Retry-After, or with nothing
// remaining.
func limit(resp *http.Response, now time.Time) (time.Time, bool) {
	after := resp.Header.Get("Retry-After") != ""
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
	case http.StatusForbidden:
		if !used(resp.Header) && !after {
			return time.Time{}, false
		}
	case http.StatusServiceUnavailable:
		if !after {
			return time.Time{}, false
		}
	default:
		return time.Time{}, false
	}
	return pause(resp.Header, now), true
}

// pause is what the headers say of when to come back.
func pause(h http.Header, now time.Time) time.Time {
	until := now.Add(defaultPause)
	after := h.Get("Retry-After")
	if seconds, err := strconv.ParseInt(after, 10, 32); err == nil && seconds >= 0 {
		until = now.Add(time.Duration(seconds) * time.Second)
	} else if at, err := http.ParseTime(after); err == nil {
		until = at
	} else if epoch, err := strconv.ParseInt(first(h, "X-RateLimit-Reset", "RateLimit-Reset"), 10, 64); err == nil &&
		used(h) {
		until = time.Unix(epoch, 0)
	}
	if least := now.Add(time.Second); until.Before(least) { // its clock is another
		until = least
	}
	if most := now.Add(maxPause); until.After(most) {
		until = most
	}
	return until
}

// used says that nothing remains of what may be asked.
func used(h http.Header) bool { return first(h, "X-RateLimit-Remaining", "RateLimit-Remaining") == "0" }

func first(h http.Header, names ...string) string {
	for _, name := range names {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	return ""
}
