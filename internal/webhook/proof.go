package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// tolerance is how far a signed time may be off, as Standard Webhooks advises.
const tolerance = 5 * time.Minute

// mostSums is how many signatures one delivery may bring, as it does while its sender changes keys.
const mostSums = 8

// scheme is how a delivery is proven.
type scheme string

const (
	schemeBody     scheme = "hmac"
	schemeStandard scheme = "standard-webhooks"
	schemeToken    scheme = "token"
	schemeNone     scheme = "unsigned"
)

// claim is what a delivery brings to prove where it is from.
type claim struct {
	scheme scheme
	// sums are claimed to be the HMAC, if there is one.
	sums [][]byte
	// before is what is hashed before the body.
	before string
	token  string
	// id tells deliveries apart; only Standard Webhooks sign it.
	id string
}

// bodyHeaders have the HMAC of the body in hex.
var bodyHeaders = []string{"X-Hub-Signature-256", "X-Gitea-Signature", "X-Forgejo-Signature"}

// idHeaders say which delivery, or retry of one, this is. GitLab's X-Gitlab-Webhook-UUID changes with each retry.
var idHeaders = []string{"X-Forgejo-Delivery", "X-Gitea-Delivery", "X-GitHub-Delivery", "Webhook-Id", "Idempotency-Key",
	"X-Gitlab-Event-UUID"}

// claimOf reads what headers claim. The strongest proof counts, if there are several: a signature of the time is never
// passed over for a bare token.
func claimOf(h http.Header, now time.Time) (claim, error) {
	c := claim{scheme: schemeNone, id: first(h, idHeaders)}
	if h.Get("Webhook-Signature") != "" {
		return c.standard(h, now)
	}
	for _, name := range bodyHeaders {
		values, ok := h[http.CanonicalHeaderKey(name)]
		if !ok || len(values) == 0 {
			continue
		}
		sum, err := hex.DecodeString(strings.TrimPrefix(values[0], "sha256="))
		if err != nil || len(sum) != sha256.Size {
			return claim{}, fmt.Errorf("%s: want a SHA-256 in hex; does the forge's webhook have a secret?", name)
		}
		c.scheme, c.sums = schemeBody, [][]byte{sum}
		return c, nil
	}
	if token := h.Get("X-Gitlab-Token"); token != "" {
		c.scheme, c.token = schemeToken, token
	}
	return c, nil
}

// standard reads the headers of Standard Webhooks.
func (c claim) standard(h http.Header, now time.Time) (claim, error) {
	id, stamp := h.Get("Webhook-Id"), h.Get("Webhook-Timestamp")
	if id == "" || strings.Contains(id, ".") {
		return claim{}, errors.New("Webhook-Id is missing, or has a dot in it")
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return claim{}, errors.New("Webhook-Timestamp: want a time in seconds")
	}
	if off := now.Sub(time.Unix(seconds, 0)); off > tolerance || off < -tolerance {
		return claim{}, fmt.Errorf("Webhook-Timestamp is %s off, and %s are the most: is the clock right?",
			off.Round(time.Second), tolerance)
	}
	c.scheme, c.id, c.before = schemeStandard, id, id+"."+stamp+"."
	for _, field := range strings.Fields(h.Get("Webhook-Signature")) {
		version, text, _ := strings.Cut(field, ",")
		sum, err := base64.StdEncoding.DecodeString(text)
		if version != "v1" || err != nil || len(sum) != sha256.Size {
			continue // of another version
		}
		if c.sums = append(c.sums, sum); len(c.sums) == mostSums {
			break
		}
	}
	if len(c.sums) == 0 {
		return claim{}, errors.New("Webhook-Signature has no signature of version v1")
	}
	return c, nil
}

// check is a claim being checked while a body is written to it.
type check struct {
	claim  claim
	hashes []hash.Hash
	ok     bool
}

// against begins to check a claim. Without secrets anything is proven.
func (c claim) against(secrets []secret) *check {
	k := &check{claim: c, ok: secrets == nil}
	for _, s := range secrets {
		key := s.text
		switch c.scheme {
		case schemeToken:
			// Hashes have one length, so the time says nothing of the secret's.
			a, b := sha256.Sum256(s.text), sha256.Sum256([]byte(c.token))
			k.ok = hmac.Equal(a[:], b[:]) || k.ok
			continue
		case schemeStandard:
			key = s.key
		case schemeNone:
			key = nil
		}
		if len(key) == 0 {
			continue
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(c.before))
		k.hashes = append(k.hashes, mac)
	}
	return k
}

// hopeless says that no body can prove the claim.
func (k *check) hopeless() bool { return !k.ok && len(k.hashes) == 0 }

// Write takes a part of the body.
func (k *check) Write(p []byte) (int, error) {
	for _, h := range k.hashes {
		h.Write(p)
	}
	return len(p), nil
}

// proven says whether the claim holds for the body that was written.
func (k *check) proven() bool {
	ok := k.ok
	for _, h := range k.hashes {
		sum := h.Sum(nil)
		for _, claimed := range k.claim.sums {
			ok = hmac.Equal(sum, claimed) || ok
		}
	}
	return ok
}

// key is what a delivery that is proven is remembered by, "" if nothing tells it from another.
func (c claim) key() string {
	switch {
	case c.scheme == schemeBody:
		return string(c.scheme) + " " + string(c.sums[0])
	case c.id == "":
		return ""
	}
	return string(c.scheme) + " " + c.id
}

// first is the first header there is.
func first(h http.Header, names []string) string {
	for _, name := range names {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	return ""
}
