package bundle

import (
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/rampart-gitops/rampart/internal/httpclient"
)

// credentialError is a token that could not be had.
type credentialError struct{ err error }

func (e *credentialError) Error() string { return "the token for it: " + e.err.Error() }
func (e *credentialError) Unwrap() error { return e.err }

// statusError is an answer without a bundle: its HTTP status.
type statusError struct{ code int }

func (e *statusError) Error() string {
	text := fmt.Sprintf("the server answers HTTP %d %s", e.code, http.StatusText(e.code))
	switch e.code {
	case http.StatusUnauthorized, http.StatusForbidden:
		text += " (look at the token)"
	case http.StatusNotFound:
		text += " (look at the URL)"
	}
	return text
}

// words says what went wrong. It leaves out what changes from one time to the next, such as ports: they get into Git.
func words(err error) string {
	var (
		redirect   *httpclient.RedirectError
		redirects  *httpclient.TooManyRedirectsError
		credential *credentialError
		late       net.Error
	)
	switch {
	case errors.As(err, &credential):
		return oneLine(err.Error())
	case errors.As(err, &redirect):
		return redirect.Error()
	case errors.As(err, &redirects):
		return redirects.Error()
	case errors.Is(err, errLate), errors.As(err, &late) && late.Timeout():
		return errLate.Error()
	}
	if failed := httpclient.Failure(err); failed != "" {
		return "its server cannot be reached: " + failed
	}
	return oneLine(err.Error())
}

const maxText = 500

// oneLine is a foreign text fit for a message.
func oneLine(s string) string { return httpclient.OneLine(s, maxText) }
