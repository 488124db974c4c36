package temporal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func connectionTo(hostPort string) v1alpha1.Connection {
	return v1alpha1.Connection{
		Metadata: v1alpha1.ObjectMeta{Namespace: "shop", Name: "main"}, Spec: v1alpha1.ConnectionSpec{HostPort: hostPort},
	}
}

// clusterConnectionTo is a ClusterConnection of the same name.
func clusterConnectionTo(hostPort string) v1alpha1.Connection {
	c := connectionTo(hostPort)
	c.Kind, c.Metadata.Namespace = v1alpha1.KindClusterConnection, ""
	return c
}

func TestResolve(t *testing.T) {
	secret := Address{HostPort: "bot:1", APIKeyFile: "/key"}
	plain := connectionTo("repo:7233")
	mutual := connectionTo("repo:7233")
	mutual.Spec.MutualTLSSecretRef = &v1alpha1.SecretReference{Name: "tls"}
	mutual.Spec.TLS = &v1alpha1.ConnectionTLS{ServerName: "repo.example"}
	withKey := connectionTo("repo:7233")
	withKey.Spec.APIKeySecretRef = &corev1.SecretKeySelector{}
	trusting := connectionTo("repo:7233")
	trusting.Spec.TLS = &v1alpha1.ConnectionTLS{CACertSecretRef: &v1alpha1.SecretReference{Name: "ca"}}
	named := connectionTo("repo:7233")
	named.Spec.TLS = &v1alpha1.ConnectionTLS{ServerName: "repo.example"}
	cluster := clusterConnectionTo("repo:7233")
	for name, c := range map[string]struct {
		cfg    Config
		conn   v1alpha1.Connection
		want   Address
		source string
		err    bool
	}{
		"nothing configured":               {Config{}, plain, Address{HostPort: "repo:7233"}, "repository", false},
		"nothing configured, pods use TLS": {Config{}, mutual, Address{HostPort: "repo:7233", ServerName: "repo.example", TLS: TLS{Mode: TLSOn}}, "repository", false},
		"nothing configured, pods use key": {Config{}, withKey, Address{HostPort: "repo:7233", TLS: TLS{Mode: TLSOn}}, "repository", false},
		"override":                         {Config{Override: &secret, Connections: map[string]Address{"shop/main": {HostPort: "other:1"}}}, mutual, secret, "override", false},
		"by name, own address": {
			Config{Connections: map[string]Address{"shop/main": secret, "repo:7233": {APIKeyFile: "/no"}}},
			plain, secret, "connection shop/main", false,
		},
		"by name, credentials without address": {Config{Connections: map[string]Address{"shop/main": {APIKeyFile: "/key"}}}, plain, Address{}, "", true},
		"by name, nothing secret":              {Config{Connections: map[string]Address{"shop/main": {ServerName: "x"}}}, plain, Address{HostPort: "repo:7233", ServerName: "x"}, "connection shop/main", false},
		"by address": {
			Config{Connections: map[string]Address{"repo:7233": {APIKeyFile: "/key"}}},
			mutual, Address{HostPort: "repo:7233", APIKeyFile: "/key"}, "address repo:7233", false,
		},
		"another address is no match": {
			Config{Connections: map[string]Address{"repo:7233": {APIKeyFile: "/key"}}},
			connectionTo("evil:7233"), Address{HostPort: "evil:7233"}, "repository", false,
		},
		"nothing configured, pods trust a CA":  {Config{}, trusting, Address{HostPort: "repo:7233", TLS: TLS{Mode: TLSOn}}, "repository", false},
		"nothing configured, only server name": {Config{}, named, Address{HostPort: "repo:7233", ServerName: "repo.example"}, "repository", false},
		"a ClusterConnection is not known by its name: every environment may have it": {
			Config{Connections: map[string]Address{"main": secret, "/main": secret}}, cluster, Address{HostPort: "repo:7233"}, "repository", false,
		},
		"a ClusterConnection, by address": {
			Config{Connections: map[string]Address{"repo:7233": {APIKeyFile: "/key"}}},
			cluster, Address{HostPort: "repo:7233", APIKeyFile: "/key"}, "address repo:7233", false,
		},
		"a namespace's connection is no match for a ClusterConnection": {
			Config{Connections: map[string]Address{"shop/main": secret, "/main": secret}}, cluster, Address{HostPort: "repo:7233"}, "repository", false,
		},
		"a ClusterConnection is no match for a namespace's connection": {
			Config{Connections: map[string]Address{"main": secret}}, plain, Address{HostPort: "repo:7233"}, "repository", false,
		},
		"another namespace's connection is no match": {
			Config{Connections: map[string]Address{"prod/main": secret}}, plain, Address{HostPort: "repo:7233"}, "repository", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.cfg.resolve(c.conn)
			require.Equal(t, c.err, err != nil, "%v", err)
			require.Empty(t, cmp.Diff(c.want, got.Address, cmpopts.IgnoreFields(Address{}, "APIKey")))
			require.Equal(t, c.source, got.source)
		})
	}
}

func TestKeyTellsConnectionsApart(t *testing.T) {
	a := resolved{Address{HostPort: "a:1", APIKeyFile: "/key"}, "override"}
	b := resolved{Address{HostPort: "a:1", APIKeyFile: "/key"}, "address a:1"}
	require.Equal(t, a.key(), b.key(), "the same address with the same credentials")
	for _, other := range []Address{
		{HostPort: "b:1", APIKeyFile: "/key"}, {HostPort: "a:1", APIKeyFile: "/other"}, {HostPort: "a:1"},
		{HostPort: "a:1", APIKeyFile: "/key", ServerName: "x"}, {HostPort: "a:1", APIKeyFile: "/key", TLS: TLS{CAFile: "/ca"}},
		{HostPort: "a:1", APIKeyFile: "/key", TLS: TLS{Mode: TLSOn}},
	} {
		require.NotEqual(t, a.key(), resolved{other, "override"}.key(), "%v", other)
	}
	f := func() (string, error) { return "", nil }
	require.NotEqual(t, resolved{Address{HostPort: "a:1", APIKey: f}, "x"}.key(), resolved{Address{HostPort: "a:1", APIKey: f}, "y"}.key())
}

func TestStamp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	a := Address{TLS: TLS{CAFile: file}}
	missing := a.stamp()
	require.NoError(t, os.WriteFile(file, []byte("one"), 0o600))
	first := a.stamp()
	require.NotEqual(t, missing, first)
	require.Equal(t, first, a.stamp())
	later := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(file, later, later))
	require.NotEqual(t, first, a.stamp())
	require.Equal(t, "", Address{HostPort: "a:1"}.stamp())
}

func TestCheckHostPort(t *testing.T) {
	for _, good := range []string{"localhost:7233", "a.b-c_d.example:1", "127.0.0.1:65535", "[::1]:7233"} {
		require.NoError(t, checkHostPort(good), good)
	}
	for _, bad := range []string{
		"", "host", ":7233", "host:", "host:0", "host:65536", "host:http", "unix:///tmp/x", "unix:x", "passthrough:///a:1",
		"a/b:1", "dns://8.8.8.8/a:1", "a b:1", "a@b:1", "[::1]", "a,b:1",
	} {
		require.Error(t, checkHostPort(bad), bad)
	}
}

func FuzzHostPort(f *testing.F) {
	for _, seed := range []string{"localhost:7233", "[::1]:1", "unix:///x:1", "a:b:c", "xn--a:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if checkHostPort(s) == nil && strings.ContainsAny(s, "/?#@ \t\n,") {
			t.Fatalf("%q is accepted", s)
		}
	})
}

func TestTLSConfig(t *testing.T) {
	for name, c := range map[string]struct {
		address Address
		tls, ok bool
	}{
		"plain":                 {Address{}, false, true},
		"server name":           {Address{ServerName: "x"}, true, true},
		"API key":               {Address{APIKeyFile: "/key"}, true, true},
		"on":                    {Address{TLS: TLS{Mode: TLSOn}}, true, true},
		"off":                   {Address{TLS: TLS{Mode: TLSOff}}, false, true},
		"off with an API key":   {Address{TLS: TLS{Mode: TLSOff}, APIKeyFile: "/key"}, false, false},
		"off with a file":       {Address{TLS: TLS{Mode: TLSOff, CAFile: "/ca"}}, false, false},
		"unknown mode":          {Address{TLS: TLS{Mode: "Maybe"}}, false, false},
		"missing CA":            {Address{TLS: TLS{CAFile: "/nowhere/ca.pem"}}, false, false},
		"certificate, no key":   {Address{TLS: TLS{CertFile: "/nowhere/tls.crt"}}, false, false},
		"key, no certificate":   {Address{TLS: TLS{KeyFile: "/nowhere/tls.key"}}, false, false},
		"certificate not there": {Address{TLS: TLS{CertFile: "/nowhere/tls.crt", KeyFile: "/nowhere/tls.key"}}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.address.tlsConfig(day)
			require.Equal(t, c.ok, err == nil, "%v", err)
			require.Equal(t, c.tls, got != nil)
		})
	}
}

func TestAPIKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	fromFile := Address{APIKeyFile: file}
	_, err := fromFile.apiKey()
	require.Error(t, err)
	for content, want := range map[string]string{"s3cret\n": "s3cret", "  ": "", "": "", "s3\ncret": "", "s3\x00cret": ""} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		got, err := fromFile.apiKey()
		require.Equal(t, want, got, "%q", content)
		require.Equal(t, want == "", err != nil, "%q", content)
		if err != nil {
			require.NotContains(t, err.Error(), "cret")
		}
	}
	got, err := Address{APIKey: func() (string, error) { return "k", nil }}.apiKey()
	require.NoError(t, err)
	require.Equal(t, "k", got)
	_, err = Address{APIKey: func() (string, error) { return "", errors.New("locked") }}.apiKey()
	require.ErrorContains(t, err, "locked")
	got, err = Address{}.apiKey()
	require.NoError(t, err)
	require.Equal(t, "", got)
}
