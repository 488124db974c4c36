package bundles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"unicode"
)

// credentialError is a token that could not be had.
type credentialError struct{ err error }

func (e *credentialError) Error() string { return "the token for it: " + e.err.Error() }
func (e *credentialError) Unwrap() error { return e.err }

// statusError is an answer that is no bundle.
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
		redirect *redirectError
		name     *net.DNSError
		op       *net.OpError
		late     net.Error
		at       *url.Error
	)
	switch {
	case errors.Is(err, errLate):
		return errLate.Error()
	case errors.As(err, &redirect):
		return redirect.Error()
	case errors.Is(err, errRedirects):
		return errRedirects.Error()
	case errors.As(err, &name):
		return "its server's name is not known to DNS, or DNS cannot be asked"
	case certificate(err) != "":
		return certificate(err)
	case errors.As(err, &late) && late.Timeout():
		return errLate.Error()
	case errors.As(err, &op):
		// Not op.Error(), which has our port.
		var call *os.SyscallError
		if errors.As(op.Err, &call) {
			return "its server cannot be reached: " + op.Op + ": " + call.Err.Error()
		}
		return "its server cannot be reached: " + op.Op + ": " + oneLine(op.Err.Error())
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) && errors.As(err, &at):
		return "the server hung up before the end"
	case errors.As(err, &at):
		return oneLine(at.Err.Error())
	}
	return oneLine(err.Error())
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
		return "its server's certificate is signed by nobody who is trusted"
	case errors.As(err, &host):
		return "its server's certificate is for another name"
	case errors.As(err, &invalid):
		return "its server's certificate is not valid, or not any more"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return "its server does not speak TLS"
	}
	return ""
}

const maxText = 500

// oneLine is a foreign text fit for a message.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}
