package git

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// maxAdvertisement is how much a server may say about its branches: a million of them.
const maxAdvertisement = 64 << 20

// service is the server's side of a conversation, by the name of the command that speaks it.
type service string

const (
	uploadPack  service = transport.UploadPackServiceName
	receivePack service = transport.ReceivePackServiceName
)

// op is how errors call what was tried.
func (s service) op() string {
	if s == receivePack {
		return "push"
	}
	return "fetch"
}

// remote opens conversations with one repository, one at a time. Its errors are *AccessError, or wrap
// the context's.
type remote interface {
	// open starts a conversation and reads what the server advertises.
	open(ctx context.Context, s service) (session, *packp.AdvRefs, error)
	// hide takes the credentials in use out of what the server said, which may repeat them.
	hide(said string) string
	// close releases connections kept for the next conversation.
	close()
}

// session is one conversation, for one request.
type session interface {
	// fetch asks for a pack. The response must be read, or close be called.
	fetch(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error)
	// push sends a pack and a command. After a *sentError it is not known what the server did; with any other error
	// it was not reached, or refused to listen.
	push(ctx context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error)
	// close ends the conversation, waiting for the server where it still has work to do.
	close()
}

func newRemote(addr address, auth Auth, w *watch) (remote, error) {
	fail := func(reason Reason, hint string, err error) error {
		e := &AccessError{Op: "open", URL: addr.display, Reason: reason, Hint: hint, Err: err}
		if err != nil {
			e.Detail = err.Error()
		}
		return e
	}
	switch addr.scheme {
	case "file":
		return &fileRemote{addr: addr, watch: w}, nil
	case "ssh":
		if auth.SSHKey == nil {
			return nil, fail(ReasonCredentials, "give a private key for SSH", nil)
		}
		if auth.KnownHosts == "" {
			return nil, fail(ReasonHostKey, "give a known_hosts file that has the server's key", nil)
		}
		return &sshRemote{addr: addr, auth: auth, watch: w}, nil
	}
	if addr.scheme == "http" && !addr.isLoopback() && auth.hasBasic(addr) {
		return nil, fail(ReasonInsecure, "credentials are not sent over plain HTTP: use https", nil)
	}
	config, err := auth.TLSConfig()
	if err != nil {
		return nil, fail(ReasonCertificate, "give a readable PEM file", err)
	}
	return &httpRemote{addr: addr, auth: auth, watch: w, transport: newHTTPTransport(auth, config)}, nil
}

// interrupted is the error of a conversation that the caller ended, or the mirror itself because the server is waited
// for too long.
func interrupted(ctx context.Context, s service, addr address) error {
	cause := context.Cause(ctx)
	if _, ok := errors.AsType[*waitError](cause); ok {
		return &AccessError{Op: s.op(), URL: addr.display, Reason: ReasonNetwork, Detail: cause.Error(), Err: cause}
	}
	return fmt.Errorf("%s %s: %w", s.op(), addr.display, cause)
}
