package git

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// issuer is what a source of credentials fails with.
type issuer struct{ refuses bool }

func (i issuer) Error() string { return "the App is not installed" }
func (i issuer) Refused() bool { return i.refuses }

// A server refuses whose credentials it does not take and whose repository it does not have. One that is away, broken
// or asked too often does not refuse.
func TestRefused(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	answers := func(code int, headers ...string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			http.Error(w, "no", code)
		}))
		t.Cleanup(s.Close)
		return s.URL + "/x.git"
	}
	basic := gittest.ServeHTTP(t, r, gittest.HTTPConfig{User: "bot", Password: "right"})
	ssh := gittest.ServeSSH(t)
	key, hosts := SecretFile(ssh.KeyFile), ssh.KnownHostsFile
	from := func(err error) Secret { return func(ctx context.Context) (string, error) { return "", err } }
	for name, c := range map[string]struct {
		url     string
		auth    Auth
		reason  Reason
		refused bool
		says    string
	}{
		"401":                           {basic.URL, Auth{User: "bot", Password: SecretValue("wrong")}, ReasonUnauthorized, true, "wrong or has expired"},
		"403":                           {answers(403), Auth{}, ReasonForbidden, true, "lacks the right"},
		"403 with some of a limit left": {answers(403, "X-RateLimit-Remaining", "17"), Auth{}, ReasonForbidden, true, "lacks the right"},
		"403 of GitHub's limit":         {answers(403, "X-RateLimit-Remaining", "0"), Auth{}, ReasonRateLimited, false, "HTTP 403 Forbidden"},
		"403 of GitHub's second limit":  {answers(403, "Retry-After", "60"), Auth{}, ReasonRateLimited, false, "come back after 60"},
		"403 of GitLab's limit":         {answers(403, "RateLimit-Remaining", "0"), Auth{}, ReasonRateLimited, false, "asked again later"},
		"429":                           {answers(429, "Retry-After", "7"), Auth{}, ReasonRateLimited, false, "HTTP 429 Too Many Requests (the server says to come back after 7)"},
		"404":                           {answers(404), Auth{}, ReasonNotFound, true, "check the URL"},
		"500":                           {answers(500), Auth{}, ReasonServer, false, "HTTP 500"},
		"503, come back":                {answers(503, "Retry-After", "60"), Auth{}, ReasonServer, false, "HTTP 503"},
		"nothing listens":               {"http://127.0.0.1:1/x.git", Auth{}, ReasonNetwork, false, "check the host"},
		"no folder":                     {"file:///no/such/repo.git", Auth{}, ReasonNotFound, true, "check the path"},
		"no repository":                 {"file://" + t.TempDir(), Auth{}, ReasonNotFound, true, "does not appear"},
		"another SSH key":               {ssh.URL(r), Auth{SSHKey: SecretFile(ssh.OtherKeyFile), KnownHosts: hosts}, ReasonUnauthorized, true, "does not accept this key"},
		"no repository over SSH":        {"ssh://" + ssh.User + "@" + ssh.Addr + "/no/such.git", Auth{SSHKey: key, KnownHosts: hosts}, ReasonNotFound, true, ""},
		"another host key":              {ssh.URL(r), Auth{SSHKey: key, KnownHosts: ssh.OtherHostsFile}, ReasonHostKey, false, "in between"},
		"a token that cannot be read":   {basic.URL, Auth{Password: from(errors.New("vault is sealed"))}, ReasonCredentials, false, "sealed"},
		"a token that is refused":       {basic.URL, Auth{Password: from(fmt.Errorf("get token: %w", issuer{true}))}, ReasonCredentials, true, "not installed"},
		"a token, asked for too often":  {basic.URL, Auth{Password: from(issuer{false})}, ReasonCredentials, false, "not installed"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Open(Config{URL: c.url, Dir: t.TempDir(), Auth: c.auth, Log: (&logs{}).logger()})
			require.NoError(t, err)
			defer m.Close()
			_, err = m.Fetch(soon(t), "main")
			var access *AccessError
			require.ErrorAs(t, err, &access)
			require.Equal(t, c.reason, access.Reason, err)
			require.Equal(t, c.refused, access.Refused(), "%v", err)
			require.ErrorContains(t, err, c.says)
		})
	}
	require.False(t, (&AccessError{Reason: ReasonNotFound, Detail: "GitLab is not available"}).Refused(), "a server that ends the conversation")
	require.True(t, (&AccessError{Reason: ReasonNotFound, Detail: "ERROR: Repository not found."}).Refused())
}
