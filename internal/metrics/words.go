package metrics

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/rampart-gitops/rampart/internal/httpclient"
)

// words says what went wrong, and whether there was no answer in time, or no server to give one. It leaves out what
// changes from one time to the next (ports, times, bodies of foreign error pages).
func (c *Client) words(err error) (problem string, away bool) {
	var (
		redirect   *httpclient.RedirectError
		redirects  *httpclient.TooManyRedirectsError
		credential *credentialError
		tooLarge   *http.MaxBytesError
		answered   *prometheus.Error
		late       net.Error
		name       *net.DNSError
		op         *net.OpError
	)
	switch {
	case errors.As(err, &redirect):
		return "Prometheus redirects to " + redirect.To +
			", where no query is sent: configure the address that answers", false
	case errors.As(err, &redirects):
		return redirects.Error(), false
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
	return "Prometheus cannot be reached: " + cmp.Or(httpclient.Failure(err), text200(err.Error())), away
}

// said is an error that the server gave. The client library reads the API's own words only with the states 400 and 422;
// a query that took too long comes with 503.
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
		return "Prometheus, or what is before it, refuses: " + text200(message) +
			" (look at the address and the credential)"
	}
	return "Prometheus failed: " + text200(message)
}

// text200 is a foreign text fit for a message.
func text200(s string) string { return httpclient.OneLine(s, 200) }
