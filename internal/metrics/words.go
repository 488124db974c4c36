package metrics

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"unicode"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
)

// words says what went wrong, and whether there was no answer in time, or nobody to give one. It leaves out what changes from one time to the
// next (ports, times, bodies of foreign error pages).
func (c *Client) words(err error) (problem string, away bool) {
	var (
		redirect   *redirectError
		credential *credentialError
		tooLarge   *http.MaxBytesError
		answered   *prometheus.Error
		late       net.Error
		name       *net.DNSError
		op         *net.OpError
	)
	switch {
	case errors.As(err, &redirect):
		return redirect.Error(), false
	case errors.Is(err, errRedirects):
		return errRedirects.Error(), false
	case errors.As(err, &credential):
		return credential.Error(), false
	case errors.As(err, &tooLarge):
		return "the answer is larger than 1 MiB", false
	case errors.As(err, &answered):
		return said(answered), false
	case errors.Is(err, context.Canceled):
		return "the cycle ended before the answer", true
	case errors.As(err, &late) && late.Timeout():
		return "no answer within " + c.timeout.String(), true
	}
	away = errors.As(err, &name) || errors.As(err, &op) && op.Op == "dial"
	return "Prometheus cannot be reached: " + network(err), away
}

// said is an error that the server gave. The client library reads the API's own words only with the states 400 and 422; a
// query that took too long comes with 503.
func said(e *prometheus.Error) string {
	kind, message := e.Type, e.Msg
	var own struct {
		Kind    prometheus.ErrorType `json:"errorType"`
		Message string               `json:"error"`
	}
	if json.Unmarshal([]byte(e.Detail), &own) == nil && own.Kind != "" {
		kind, message = own.Kind, own.Message
	}
	switch kind {
	case prometheus.ErrBadData:
		return "Prometheus refuses it: " + text200(message)
	case prometheus.ErrTimeout:
		return "it took Prometheus too long: " + text200(message)
	case prometheus.ErrBadResponse:
		return "the answer is text, or not from Prometheus' API at all: look at the query and the address"
	case prometheus.ErrClient:
		return "Prometheus, or what is before it, refuses: " + text200(message) + " (look at the address and the credential)"
	}
	return "Prometheus failed: " + text200(message)
}

// network says what failed in a connection.
func network(err error) string {
	var (
		name      *net.DNSError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		op        *net.OpError
		at        *url.Error
	)
	switch {
	case errors.As(err, &name):
		return "its name is not known to DNS, or DNS cannot be asked"
	case errors.As(err, &authority):
		return "its certificate is signed by nobody who is trusted"
	case errors.As(err, &host):
		return "its certificate is for another name"
	case errors.As(err, &invalid):
		return "its certificate is not valid, or not any more"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "it does not speak TLS"
	case errors.As(err, &op):
		// Not op.Error(), which has our port.
		var call *os.SyscallError
		if errors.As(op.Err, &call) {
			return op.Op + ": " + call.Err.Error()
		}
		return op.Op + ": " + text200(op.Err.Error())
	case errors.As(err, &at):
		return text200(at.Err.Error())
	}
	return text200(err.Error())
}

// text200 is a foreign text fit for a message: one line of at most 200 bytes.
func text200(s string) string {
	const most = 200
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
