package temporal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTakesSecrets: a Secret goes where the bot's own configuration says, encrypted, and nowhere else.
func TestTakesSecrets(t *testing.T) {
	cluster := New(Config{Connections: map[string]Address{"main": {HostPort: "bot:1", TLS: TLS{Mode: TLSOn}}, "known:1": {TLS: TLS{Mode: TLSOn}}}})
	require.NoError(t, cluster.TakesSecrets(clusterConnectionTo("known:1")))
	require.ErrorContains(t, cluster.TakesSecrets(clusterConnectionTo("repo:7233")), "repo:7233 of connection main is the repository's")

	tls := TLS{Mode: TLSOn}
	const repository, plain = "is the repository's", "goes only over TLS"
	for name, c := range map[string]struct {
		cfg   Config
		leads string
		want  string // "": it may
	}{
		"the repository's":                  {Config{}, "repo:7233", repository},
		"the repository's, this machine":    {Config{}, "localhost:7233", repository},
		"for all, over TLS":                 {Config{Override: &Address{HostPort: "bot:1", TLS: tls}}, "repo:7233", ""},
		"for all, with an API key":          {Config{Override: &Address{HostPort: "bot:1", APIKeyFile: "/key"}}, "repo:7233", ""},
		"for all, without TLS":              {Config{Override: &Address{HostPort: "bot:1"}}, "repo:7233", plain},
		"for all, TLS off":                  {Config{Override: &Address{HostPort: "bot:1", TLS: TLS{Mode: TLSOff}}}, "repo:7233", plain},
		"for all, this machine":             {Config{Override: &Address{HostPort: "127.0.0.1:1"}}, "repo:7233", ""},
		"for all, this machine by its name": {Config{Override: &Address{HostPort: "LocalHost:1"}}, "repo:7233", ""},
		"for all, this machine, IPv6":       {Config{Override: &Address{HostPort: "[::1]:1"}}, "repo:7233", ""},
		"by name":                           {Config{Connections: map[string]Address{"shop/main": {HostPort: "bot:1", TLS: tls}}}, "repo:7233", ""},
		"by name, without an address":       {Config{Connections: map[string]Address{"shop/main": {ServerName: "x"}}}, "repo:7233", repository},
		"by name, without TLS":              {Config{Connections: map[string]Address{"shop/main": {HostPort: "bot:1"}}}, "repo:7233", plain},
		"by address":                        {Config{Connections: map[string]Address{"repo:7233": {TLS: tls}}}, "repo:7233", ""},
		"by another address":                {Config{Connections: map[string]Address{"repo:7233": {TLS: tls}}}, "evil:7233", repository},
		"by another name":                   {Config{Connections: map[string]Address{"shop/other": {HostPort: "bot:1", TLS: tls}}}, "repo:7233", repository},
		"credentials without an address":    {Config{Connections: map[string]Address{"shop/main": {APIKeyFile: "/key"}}}, "repo:7233", "with credentials and without an address"},
	} {
		t.Run(name, func(t *testing.T) {
			err := New(c.cfg).TakesSecrets(connectionTo(c.leads))
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}
