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

// limit tells until when a forge wants to be left alone: 429; or 403 or 503 with Retry-After, or with nothing remaining.
func limit(resp *http.Response, now time.Time) (time.Time, bool) {
	h := resp.Header
	used := first(h, "X-RateLimit-Remaining", "RateLimit-Remaining") == "0"
	after := h.Get("Retry-After")
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
	case http.StatusForbidden:
		if !used && after == "" {
			return time.Time{}, false
		}
	case http.StatusServiceUnavailable:
		if after == "" {
			return time.Time{}, false
		}
	default:
		return time.Time{}, false
	}
	until := now.Add(defaultPause)
	if seconds, err := strconv.ParseInt(after, 10, 32); err == nil && seconds >= 0 {
		until = now.Add(time.Duration(seconds) * time.Second)
	} else if at, err := http.ParseTime(after); err == nil {
		until = at
	} else if epoch, err := strconv.ParseInt(first(h, "X-RateLimit-Reset", "RateLimit-Reset"), 10, 64); err == nil && used {
		until = time.Unix(epoch, 0)
	}
	if least := now.Add(time.Second); until.Before(least) { // its clock is another
		until = least
	}
	if most := now.Add(maxPause); until.After(most) {
		until = most
	}
	return until, true
}

func first(h http.Header, names ...string) string {
	for _, name := range names {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	return ""
}
