package git

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// Secret gives a credential each time one is needed, so that a renewed token or a rotated key is picked
// up. It must be safe for concurrent use. Its value never reaches a log or an error.
type Secret func(ctx context.Context) (string, error)

// SecretFile reads a credential from a file each time, without line ends at its end.
func SecretFile(path string) Secret {
	return func(context.Context) (string, error) {
		data, err := os.ReadFile(path)
		return strings.TrimRight(string(data), "\r\n"), err
	}
}

// SecretValue gives always the same credential.
func SecretValue(value string) Secret {
	return func(context.Context) (string, error) { return value, nil }
}

// DefaultTokenUser is the user name that goes with a token when none is given: forges take any, and
// GitHub documents this one.
const DefaultTokenUser = "x-access-token"

// Auth is how to prove who we are, and how the server proves who it is. All of it is optional for
// file:// and for public repositories over HTTP.
type Auth struct {
	// User goes with Password (HTTP basic authentication); DefaultTokenUser when empty.
	User string
	// Password is a token or a password, for HTTP. It wins over one in the URL.
	Password Secret
	// Refused is called with a Password that the server did not take, before Password is asked once more; nil: no
	// call is made.
	Refused func(password string)
	// CAFile is a PEM file of certificate authorities trusted beside the system's, for HTTPS.
	CAFile string
	// Proxy chooses a proxy by a request's URL; nil means none. It is asked about SSH too, with a URL of the scheme ssh
	// that names the host and the port. Proxies are http://, https:// and socks5:// ones, and what goes to them under
	// SSH is encrypted to the server itself.
	Proxy func(*http.Request) (*url.URL, error)

	// SSHKey is a private key in PEM or OpenSSH format. Required for SSH.
	SSHKey Secret
	// SSHPassphrase opens SSHKey when it is encrypted.
	SSHPassphrase Secret
	// KnownHosts is a known_hosts file. Required for SSH: a server that is not in it is refused.
	KnownHosts string
}

// login is a user name and what goes with it.
type login struct {
	user, password string
	given          bool // else the server is asked without
}

// basic gives the credentials for HTTP.
func (a Auth) basic(ctx context.Context, addr address) (login, error) {
	if a.Password != nil {
		password, err := a.Password(ctx)
		return login{cmp.Or(a.User, addr.user, DefaultTokenUser), password, true}, err
	}
	if addr.password != "" || addr.user != "" {
		return login{cmp.Or(addr.user, DefaultTokenUser), addr.password, true}, nil
	}
	return login{}, nil
}

// hide takes the password out of a text, also as HTTP sends it.
func (l login) hide(text string) string {
	if !l.given {
		return text
	}
	secrets := []string{base64.StdEncoding.EncodeToString([]byte(l.user + ":" + l.password)), l.password}
	if l.password == "" {
		secrets = append(secrets, l.user) // a token alone in the URL
	}
	for _, secret := range secrets {
		if len(secret) >= leastSecret {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}

// leastSecret is the length from which a credential is looked for in texts: a shorter one is in too many words.
const leastSecret = 5

func (a Auth) hasBasic(addr address) bool {
	return a.Password != nil || addr.password != "" || addr.user != ""
}

// TLSConfig trusts the system's authorities and those of CAFile.
func (a Auth) TLSConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CAFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(a.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read CA file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("CA file %s holds no certificate in PEM", a.CAFile)
	}
	config.RootCAs = pool
	return config, nil
}
