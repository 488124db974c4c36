package temporal

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// TLSMode says whether a connection is encrypted.
type TLSMode string

// The TLS modes. The zero value means TLS wherever a server name, a file or an API key is given.
const (
	TLSAuto TLSMode = ""
	TLSOn   TLSMode = "On"
	TLSOff  TLSMode = "Off"
)

// TLS of an address. Files are PEM; they are looked at before every use and read again when they changed.
type TLS struct {
	Mode TLSMode
	// CertFile and KeyFile are the client's certificate and key, for mutual TLS.
	CertFile, KeyFile string
	// CAFile holds certificates that are trusted beside the system's.
	CAFile string
	// Cert, Key and CA are the same as PEM, where they are not in files.
	Cert, Key, CA []byte
}

// hasCert reports whether there is a client's certificate or its key.
func (t TLS) hasCert() bool { return t.CertFile != "" || t.KeyFile != "" || len(t.Cert)+len(t.Key) > 0 }

// hasCA reports whether there are authorities to trust beside the system's.
func (t TLS) hasCA() bool { return t.CAFile != "" || len(t.CA) > 0 }

// Address is where a Temporal server is and what the bot shows it. It comes from the bot's own configuration (flags,
// variables, a file), never from a repository.
type Address struct {
	// HostPort is host:port.
	HostPort string
	// ServerName is verified in the server's certificate in place of the host.
	ServerName string
	TLS        TLS
	// APIKeyFile holds an API key, read for every call. With an API key, TLS is always on.
	APIKeyFile string
	// APIKey gives the API key where it is not in a file.
	APIKey func() (string, error)
	// Headers are sent with each call, by their names in lower case.
	Headers map[string]string
	// Authority is the :authority of calls without TLS; "" is the host.
	Authority string
}

// hasCredentials reports whether anything secret would be shown.
func (a Address) hasCredentials() bool {
	return a.TLS.hasCert() || a.hasAPIKey() || len(a.Headers) > 0
}

// wantsTLS reports whether something is given that only TLS uses.
func (a Address) wantsTLS() bool {
	return a.ServerName != "" || a.TLS.hasCert() || a.TLS.hasCA() || a.hasAPIKey()
}

func (a Address) hasAPIKey() bool { return a.APIKeyFile != "" || a.APIKey != nil }

// resolved is an address with the name of where it was configured, which tells apart credentials that cannot be
// compared.
type resolved struct {
	Address
	source string
}

// resolve finds the address for a connection. It is the override; else what the configuration has for the connection's
// namespace/name; else what it has for the connection's host:port; else the connection's own host:port, without
// credentials, over TLS if the connection says that its pods use TLS.
//
// A ClusterConnection is not looked up by its name: every environment may have one of any name.
//
// A configured entry's own address counts, not the repository's. Under a host:port the address may be left out; under a
// namespace/name it may not, since the repository could then send the credentials anywhere.
func (c Config) resolve(conn v1alpha1.Connection) (resolved, error) {
	if c.Override != nil {
		return resolved{*c.Override, "override"}, nil
	}
	name := nameOf(conn)
	if a, ok := c.Connections[name]; ok && conn.Kind != v1alpha1.KindClusterConnection {
		if a.HostPort == "" && a.hasCredentials() {
			return resolved{}, fmt.Errorf("connection %s is configured with credentials and without an address", name)
		}
		a.HostPort = cmp.Or(a.HostPort, conn.Spec.HostPort)
		return resolved{a, "connection " + name}, nil
	}
	if a, ok := c.Connections[conn.Spec.HostPort]; ok {
		a.HostPort = cmp.Or(a.HostPort, conn.Spec.HostPort)
		return resolved{a, "address " + conn.Spec.HostPort}, nil
	}
	a := Address{HostPort: conn.Spec.HostPort}
	if conn.Spec.TLS != nil {
		a.ServerName = conn.Spec.TLS.ServerName
	}
	if conn.Spec.MutualTLSSecretRef != nil || conn.Spec.APIKeySecretRef != nil || conn.Spec.CACertSecret() != "" {
		a.TLS.Mode = TLSOn
	}
	return resolved{a, "repository"}, nil
}

// nameOf a connection for people: namespace/name, or name for a ClusterConnection.
func nameOf(conn v1alpha1.Connection) string {
	if conn.Kind == v1alpha1.KindClusterConnection {
		return conn.Metadata.Name
	}
	return conn.Metadata.Namespace + "/" + conn.Metadata.Name
}

// resolveThere finds the address of a connection as its pods reach it: the connection's own, with what the
// configuration has for just that address. An address that the configuration has for the connection's name, or for all,
// says how the bot reaches the server that it knows, and nothing about where the repository leads now.
func (c Config) resolveThere(conn v1alpha1.Connection) resolved {
	if r, err := c.resolve(conn); err == nil && (strings.EqualFold(r.HostPort, conn.Spec.HostPort) ||
		r.source == "address "+conn.Spec.HostPort) {
		return r
	}
	own := Config{Connections: map[string]Address{}}
	if a, ok := c.Connections[conn.Spec.HostPort]; ok {
		own.Connections[conn.Spec.HostPort] = a
	}
	r, _ := own.resolve(conn) // only what is configured by a name is refused
	return r
}

// key tells connections apart: the same address with the same credentials is one connection.
func (r resolved) key() string {
	source := ""
	if r.APIKey != nil || len(r.TLS.Cert)+len(r.TLS.Key)+len(r.TLS.CA)+len(r.Headers)+len(r.Authority) > 0 {
		source = r.source // a function cannot be compared, and what was given as text does not change
	}
	return strings.Join([]string{
		r.HostPort, r.ServerName, string(r.TLS.Mode), r.TLS.CertFile, r.TLS.KeyFile, r.TLS.CAFile, r.APIKeyFile, source,
	}, "\x00")
}

// files are all that the credentials are read from when a connection is made.
func (a Address) files() []string { return []string{a.TLS.CertFile, a.TLS.KeyFile, a.TLS.CAFile} }

// stamp changes when one of the files does. A file that cannot be looked at has a stamp of its own.
func (a Address) stamp() string {
	var b strings.Builder
	for _, name := range a.files() {
		if name == "" {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			fmt.Fprintf(&b, "%s missing\n", name)
			continue
		}
		fmt.Fprintf(&b, "%s %d %d\n", name, info.ModTime().UnixNano(), info.Size())
	}
	return b.String()
}

// checkHostPort accepts host:port and nothing that gRPC would take for another kind of target.
func checkHostPort(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("address %q: expected host:port, such as temporal.example.com:7233", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("address %q: expected a port from 1 to 65535, got %q", s, port)
	}
	if host == "" || strings.ContainsFunc(host, func(r rune) bool {
		return r != '-' && r != '.' && r != ':' && r != '%' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		return fmt.Errorf("address %q: expected a host of letters, digits and -._:%%, got %q", s, host)
	}
	return nil
}

// tlsConfig reads the address's files. Nil means no TLS.
func (a Address) tlsConfig(now time.Time) (*tls.Config, error) {
	switch a.TLS.Mode {
	case TLSOff:
		if a.wantsTLS() {
			return nil, errors.New("TLS is off, but a server name, a certificate or an API key is given")
		}
		return nil, nil
	case TLSAuto:
		if !a.wantsTLS() {
			return nil, nil
		}
	case TLSOn:
	default:
		return nil, fmt.Errorf("unknown TLS mode %q", a.TLS.Mode)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: a.ServerName}
	if a.TLS.hasCA() {
		roots, err := rootsWith(a.TLS)
		if err != nil {
			return nil, err
		}
		c.RootCAs = roots
	}
	if a.TLS.hasCert() {
		cert, err := keyPair(a.TLS, now)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}

func rootsWith(from TLS) (*x509.CertPool, error) {
	pem, what := from.CA, "the CA's text"
	if from.CAFile != "" {
		var err error
		if pem, err = os.ReadFile(from.CAFile); err != nil {
			return nil, fmt.Errorf("read CA file: %w", err)
		}
		what = "CA file " + from.CAFile
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", what)
	}
	return roots, nil
}

func keyPair(from TLS, now time.Time) (cert tls.Certificate, err error) {
	switch {
	case len(from.Cert) > 0 && len(from.Key) > 0:
		cert, err = tls.X509KeyPair(from.Cert, from.Key)
	case from.CertFile != "" && from.KeyFile != "":
		cert, err = tls.LoadX509KeyPair(from.CertFile, from.KeyFile)
	default:
		return tls.Certificate{}, errors.New("a client certificate needs both a certificate and a key, both as files " +
			"or both as text")
	}
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read client certificate: %w", err)
	}
	if leaf := cert.Leaf; leaf != nil && now.After(leaf.NotAfter) {
		return tls.Certificate{}, fmt.Errorf("client certificate %s expired at %s",
			cmp.Or(from.CertFile, "in a profile"), leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return cert, nil
}

// apiKey reads the API key, "" if the address has none.
func (a Address) apiKey() (string, error) {
	var key string
	switch {
	case a.APIKey != nil:
		k, err := a.APIKey()
		if err != nil {
			return "", fmt.Errorf("get API key: %w", err)
		}
		key = k
	case a.APIKeyFile != "":
		b, err := os.ReadFile(a.APIKeyFile)
		if err != nil {
			return "", fmt.Errorf("read API key file: %w", err)
		}
		key = string(b)
	default:
		return "", nil
	}
	key = strings.TrimSpace(key)
	if key == "" {
		return "", errors.New("API key is empty")
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", errors.New("API key holds characters that cannot be in a header")
	}
	return key, nil
}
