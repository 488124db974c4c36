package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// sshRemote runs Git's commands over SSH. The connection is kept between conversations: a handshake
// costs far more than asking for a branch's tip.
type sshRemote struct {
	addr  address
	auth  Auth
	watch *watch

	client *ssh.Client
	ended  <-chan struct{} // closed when the client's connection is
	used   time.Time       // when the last conversation started
}

// sshIdle is how long an unused connection is trusted to be alive still.
const sshIdle = time.Minute

func (r *sshRemote) close() {
	if r.client != nil {
		_ = r.client.Close() // it is not going to be used again
		r.client = nil
	}
}

// hide has nothing to do: a key never leaves.
func (r *sshRemote) hide(said string) string { return said }

func (r *sshRemote) open(ctx context.Context, s service) (session, *packp.AdvRefs, error) {
	if time.Since(r.used) > sshIdle {
		r.close()
	}
	for {
		reused := r.client != nil
		sess, adv, err := r.try(ctx, s)
		if err == nil || !reused || ctx.Err() != nil {
			return sess, adv, err
		}
		r.close() // the kept connection may have died; once more with a new one
	}
}

func (r *sshRemote) try(ctx context.Context, s service) (session, *packp.AdvRefs, error) {
	if r.client == nil {
		client, err := r.dial(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		ended := make(chan struct{})
		go func() {
			_ = client.Wait() // calls that use it return the reason
			close(ended)
		}()
		r.client, r.ended = client, ended
	}
	r.used = time.Now()
	cmd, err := r.start(ctx, s)
	if err != nil {
		r.close()
		return nil, nil, err
	}
	return openStream(ctx, cmd)
}

// start runs the command on the connection.
func (r *sshRemote) start(ctx context.Context, s service) (*command, error) {
	client := r.client
	r.watch.waits()
	defer r.watch.got()
	kill := func() { _ = client.Close() } // also ends whatever waits for an answer
	unwatch := context.AfterFunc(ctx, kill)
	defer unwatch()
	fail := func(err error) error {
		if ctx.Err() != nil {
			return interrupted(ctx, s, r.addr)
		}
		return r.fail(s, ReasonNetwork, "", err)
	}
	sess, err := unlessEnded(r.ended, client.NewSession)
	if err != nil {
		return nil, fail(err)
	}
	stderr := &head{}
	sess.Stderr = stderr
	stdin, err := sess.StdinPipe()
	if err != nil {
		return nil, fail(err)
	}
	stdout, err := sess.StdoutPipe()
	if err != nil {
		return nil, fail(err)
	}
	if err := sess.Start(string(s) + " " + shellQuote(r.repoPath())); err != nil {
		return nil, fail(errors.Join(err, sess.Close()))
	}
	return &command{
		addr: r.addr, service: s, watch: r.watch, stdin: watchedWriter{stdin, r.watch},
		stdout: watchedReader{stdout, r.watch}, stderr: stderr, wait: func() {
			_ = sess.Wait() // the exit code says nothing that the conversation has not said
			if err := sess.Close(); err != nil && !errors.Is(err, io.EOF) {
				kill()
			}
		},
		kill: kill,
		access: &AccessError{
			Reason: ReasonNotFound, Hint: "check the path, and that this key may " + s.right() + " the repository",
		},
	}, nil
}

// unlessEnded gives what do gives, or an error once a connection has ended. The library waits for ever for a session
// that is asked for just then, and no context ends that.
func unlessEnded[T any](ended <-chan struct{}, do func() (T, error)) (T, error) {
	type result struct {
		got T
		err error
	}
	done := make(chan result, 1)
	go func() {
		got, err := do()
		done <- result{got, err}
	}()
	select {
	case r := <-done:
		return r.got, r.err
	case <-ended:
		var none T
		return none, fmt.Errorf("the connection has ended: %w", net.ErrClosed)
	}
}

// repoPath is the path as the command wants it: "/~user/x" in a URL means "~user/x".
func (r *sshRemote) repoPath() string {
	if strings.HasPrefix(r.addr.path, "/~") {
		return r.addr.path[1:]
	}
	return r.addr.path
}

// shellQuote makes one word of s for the login shell at the other end.
func shellQuote(s string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(s) + "'"
}

func (r *sshRemote) fail(s service, reason Reason, hint string, err error) *AccessError {
	return &AccessError{Op: s.op(), URL: r.addr.display, Reason: reason, Detail: cleanText(err.Error()), Hint: hint,
		Err: err}
}

// dial connects, checks the host key against known_hosts and logs in.
func (r *sshRemote) dial(ctx context.Context, s service) (*ssh.Client, error) {
	hosts, err := knownhosts.NewDB(r.auth.KnownHosts)
	if err != nil {
		return nil, r.fail(s, ReasonHostKey, "give a readable known_hosts file",
			fmt.Errorf("read known_hosts: %w", err))
	}
	signer, err := r.signer(ctx)
	if err != nil {
		return nil, r.fail(s, ReasonCredentials, "check the SSH key and its passphrase", err)
	}
	port := r.addr.port
	if port == 0 {
		port = 22
	}
	hostPort := net.JoinHostPort(r.addr.host, strconv.Itoa(port))
	check := &hostCheck{verify: hosts.HostKeyCallback()}
	config := &ssh.ClientConfig{
		User:              r.addr.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback:   check.callback,
		HostKeyAlgorithms: hosts.HostKeyAlgorithms(hostPort), // else a server's other key looks like a changed one
	}
	limited, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	client, err := r.auth.connect(limited, hostPort, config)
	if err != nil && ctx.Err() != nil {
		return nil, interrupted(ctx, s, r.addr)
	}
	if err != nil {
		return nil, r.dialError(s, check, err)
	}
	return client, nil
}

// connect dials and shakes hands; the SSH library itself knows no context.
func (a Auth) connect(ctx context.Context, hostPort string, config *ssh.ClientConfig) (*ssh.Client, error) {
	conn, err := a.dialThrough(ctx, hostPort)
	if err != nil {
		return nil, err
	}
	unwatch := context.AfterFunc(ctx, func() { _ = conn.Close() })
	c, channels, requests, err := ssh.NewClientConn(conn, hostPort, config)
	if !unwatch() {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, closeQuietly(conn))
	}
	return ssh.NewClient(c, channels, requests), nil
}

func closeQuietly(c io.Closer) error {
	if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// dialError says why there is no connection. The handshake's errors carry no type, so what it had
// reached decides: after the host key was accepted, only logging in can fail.
func (r *sshRemote) dialError(s service, check *hostCheck, err error) error {
	var network net.Error
	switch {
	case knownhosts.IsHostKeyChanged(check.err):
		return r.fail(s, ReasonHostKey, "the server's key is not the one in known_hosts: someone may be in between; "+
			"after checking with the server's owner, replace it there", check.err)
	case check.err != nil:
		return r.fail(s, ReasonHostKey, "check its fingerprint with the server's owner and add it to known_hosts ("+
			check.key+")", check.err)
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, context.DeadlineExceeded), !check.accepted:
		return r.fail(s, ReasonNetwork, "check the host, the port and the proxy", err)
	}
	return r.fail(s, ReasonUnauthorized, "the server does not accept this key for user "+r.addr.user, err)
}

// hostCheck remembers what became of the host key.
type hostCheck struct {
	verify   ssh.HostKeyCallback
	key      string // the server's key as known_hosts would have it, and its fingerprint
	accepted bool
	err      error
}

func (c *hostCheck) callback(host string, addr net.Addr, key ssh.PublicKey) error {
	c.key = key.Type() + " " + ssh.FingerprintSHA256(key)
	c.err = c.verify(host, addr, key)
	c.accepted = c.err == nil
	return c.err
}

func (r *sshRemote) signer(ctx context.Context) (ssh.Signer, error) {
	pem, err := r.auth.SSHKey(ctx)
	if err != nil {
		return nil, &credentialError{"SSH key", err}
	}
	// A key file without its last line end is refused by the parser.
	data := []byte(strings.TrimRight(pem, "\r\n") + "\n")
	signer, err := ssh.ParsePrivateKey(data)
	if _, ok := errors.AsType[*ssh.PassphraseMissingError](err); !ok {
		return signer, err
	}
	if r.auth.SSHPassphrase == nil {
		return nil, errors.New("the SSH key is encrypted and no passphrase was given")
	}
	passphrase, err := r.auth.SSHPassphrase(ctx)
	if err != nil {
		return nil, &credentialError{"SSH passphrase", err}
	}
	return ssh.ParsePrivateKeyWithPassphrase(data, []byte(passphrase))
}
