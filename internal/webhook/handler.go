package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"time"

	"golang.org/x/time/rate"
)

const (
	// MaxBody is how many bytes a delivery may have: GitHub and GitLab send 25 MB at most.
	MaxBody = 26 << 20
	// kept is how much of a body is looked at. What a larger one is about is not known, so it counts.
	kept = 1 << 20
)

// Config of a Handler.
type Config struct {
	// Secrets gives the secrets, one a line, for each delivery anew. nil: deliveries need no proof.
	Secrets func(context.Context) (string, error)
	// Repository is the path of the repository at its server, such as "team/workers"; "": it is not compared.
	Repository string
	// Proposals begin the names of the branches that the bot has pull requests of, such as "rampart/".
	Proposals []string
	// Watched says whether a branch is looked at, beside those of proposals.
	Watched func(branch string) bool
	// Ring is called for each delivery that counts. It must not block.
	Ring func()
	Log  *slog.Logger
	Now  func() time.Time
}

// Handler takes deliveries. It answers 202 to one that wakes the bot, 200 to one that does not have to (it is about
// something else, or was there before), and else says what is wrong: 401 no proof, 405 not POST, 408 too slow, 413 too
// large, 415 not JSON, 500 the secrets cannot be read.
type Handler struct {
	cfg   Config
	watch watch
	seen  seen
	// warn is how often refusals are told: anybody can make one.
	warn *rate.Limiter
}

var _ http.Handler = (*Handler)(nil)

// NewHandler makes a Handler. It fails if the secrets cannot be read or used.
func NewHandler(ctx context.Context, cfg Config) (*Handler, error) {
	h := &Handler{cfg: cfg, watch: watch{cfg.Repository, cfg.Proposals, cfg.Watched}, seen: newSeen(),
		warn: rate.NewLimiter(rate.Every(10*time.Second), 10)}
	_, err := h.secrets(ctx)
	return h, err
}

// secrets are those that count now; nil: none are needed.
func (h *Handler) secrets(ctx context.Context) ([]secret, error) {
	if h.cfg.Secrets == nil {
		return nil, nil
	}
	text, err := h.cfg.Secrets(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the webhook secrets: %w", err)
	}
	return parseSecrets(text)
}

// refusal is why a delivery is not taken. Only public is told to the sender.
type refusal struct {
	status int
	public string
	err    error
}

// ServeHTTP takes one delivery.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if bad := shape(r); bad != nil {
		h.refuse(w, r, bad)
		return
	}
	proof, body, bad := h.read(w, r)
	if bad != nil {
		h.refuse(w, r, bad)
		return
	}
	what := eventOf(r.Header, body)
	log := h.cfg.Log.With("forge", what.forge, "event", clip(what.name), "delivery", clip(proof.id), "proof",
		string(proof.scheme))
	if why := h.watch.boring(what); why != "" {
		log.DebugContext(r.Context(), "webhook ignored", "reason", why)
		answer(w, http.StatusOK, "ignored: "+why)
		return
	}
	if key := proof.key(); key != "" && h.seen.again(key, h.cfg.Now()) {
		log.InfoContext(r.Context(), "webhook ignored", "reason", "it was there before")
		answer(w, http.StatusOK, "ignored: it was there before")
		return
	}
	h.cfg.Ring()
	log.InfoContext(r.Context(), "webhook", "ref", clip(what.payload.Ref))
	answer(w, http.StatusAccepted, "the bot looks")
}

// shape says what is wrong with a request before anything of it is read.
func shape(r *http.Request) *refusal {
	switch kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); {
	case r.Method != http.MethodPost:
		return &refusal{http.StatusMethodNotAllowed, "a delivery is a POST", nil}
	case err != nil || kind != "application/json":
		// A form's signature is made differently by each forge. A browser asks before it sends JSON to somebody else.
		return &refusal{http.StatusUnsupportedMediaType, "set the webhook's content type to application/json", err}
	case r.Header.Get("Content-Encoding") != "":
		return &refusal{http.StatusUnsupportedMediaType, "a delivery is not compressed", nil}
	case r.ContentLength > MaxBody:
		return tooLarge()
	}
	return nil
}

func tooLarge() *refusal {
	return &refusal{http.StatusRequestEntityTooLarge, "the delivery is too large", nil}
}

// read reads the body of a delivery and checks its proof. What it gives is as much of the body as is looked at;
// nothing, if there is more.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) (claim, []byte, *refusal) {
	unproven := func(err error) *refusal {
		return &refusal{http.StatusUnauthorized, "the delivery is not signed with a secret that is known here", err}
	}
	secrets, err := h.secrets(r.Context())
	if err != nil {
		return claim{}, nil, &refusal{http.StatusInternalServerError, "the bot cannot read its webhook secrets", err}
	}
	claimed, err := claimOf(r.Header, h.cfg.Now())
	if err != nil {
		return claim{}, nil, unproven(err)
	}
	check := claimed.against(secrets)
	if check.hopeless() {
		return claim{}, nil, unproven(errors.New("no proof by any secret"))
	}
	var start head
	if _, err := io.Copy(io.MultiWriter(check, &start), http.MaxBytesReader(w, r.Body, MaxBody)); err != nil {
		return claim{}, nil, cut(err)
	}
	if !check.proven() {
		return claim{}, nil, unproven(errors.New("the signature is wrong"))
	}
	return claimed, start.all(), nil
}

// cut says why a body ended before its end.
func cut(err error) *refusal {
	var (
		large *http.MaxBytesError
		slow  net.Error
	)
	switch {
	case errors.As(err, &large):
		return tooLarge()
	case errors.As(err, &slow) && slow.Timeout():
		return &refusal{http.StatusRequestTimeout, "the delivery was too slow", err}
	}
	return &refusal{http.StatusBadRequest, "the delivery was cut off", err}
}

// refuse says that a delivery is not taken; the log says more than the answer.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, bad *refusal) {
	level := slog.LevelWarn
	if !h.warn.Allow() {
		level = slog.LevelDebug
	}
	attributes := []any{"status", bad.status, "reason", bad.public, "from", r.RemoteAddr}
	if bad.err != nil {
		attributes = append(attributes, "error", bad.err)
	}
	h.cfg.Log.Log(r.Context(), level, "webhook refused", attributes...)
	if bad.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	answer(w, bad.status, bad.public)
}

// answer answers in a line of text.
func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // it fails where the sender is gone
}

// clip shortens what a sender says, for the log.
func clip(s string) string { return s[:min(len(s), 100)] }

// head keeps what is written to it, up to a bound.
type head struct {
	text bytes.Buffer
	more bool
}

// Write keeps a part of the body if there is room.
func (h *head) Write(p []byte) (int, error) {
	h.more = h.more || h.text.Len()+len(p) > kept
	if !h.more {
		h.text.Write(p)
	}
	return len(p), nil
}

// all is what was written, nothing if it was too much.
func (h *head) all() []byte {
	if h.more {
		return nil
	}
	return h.text.Bytes()
}
