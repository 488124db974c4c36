package httpclient

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/rampart-gitops/rampart/internal/printable"
)

// Failure says what failed in a connection, of a server called "it"; "" if the error is not about one. Time-outs,
// redirects and answers are for the caller to tell, before.
func Failure(err error) string {
	var (
		name *net.DNSError
		op   *net.OpError
		at   *url.Error
	)
	switch said := certificate(err); {
	case errors.As(err, &name):
		return "its name is not known to DNS, or DNS cannot be asked"
	case said != "":
		return said
	case errors.As(err, &op):
		// Not op.Error(), which has our port.
		var call *os.SyscallError
		if errors.As(op.Err, &call) {
			return op.Op + ": " + call.Err.Error()
		}
		return op.Op + ": " + OneLine(op.Err.Error(), maxText)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF) && errors.As(err, &at):
		return "it hung up before the end"
	case errors.As(err, &at):
		return OneLine(at.Err.Error(), maxText)
	}
	return ""
}

func certificate(err error) string {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &authority):
		return "its certificate is signed by an unknown authority"
	case errors.As(err, &host):
		return "its certificate is for another name"
	case errors.As(err, &invalid):
		return "its certificate is not valid, or not any more"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return "it does not speak TLS"
	}
	return ""
}

const maxText = 200

// OneLine is a foreign text fit for a message: one line of at most that many bytes, and a sign that there was more.
func OneLine(text string, most int) string {
	text = printable.Line(strings.ToValidUTF8(text, "?"))
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
