package temporal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const profiles = `[profile.default]
address = "localhost:7233"

[profile.cloud]
address = "prod.tmprl.example.com:7233"
namespace = "prod"
api_key = "s3cret"
[profile.cloud.grpc_meta]
Team_Name = "payments"

[profile.files]
address = "temporal.example.com:7233"
[profile.files.tls]
client_cert_path = "client.pem"
client_key_path = "client.key"
server_ca_cert_path = "ca.pem"
server_name = "temporal"

[profile.texts.tls]
client_cert_data = "cert"
client_key_data = "key"
server_ca_cert_data = "ca"

[profile.plain]
[profile.plain.tls]
disabled = true

[profile.trusting]
[profile.trusting.tls]
disable_host_verification = true
`

func TestProfileOfTheCLIGivesTheAddress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "temporal.toml")
	require.NoError(t, os.WriteFile(file, []byte(profiles), 0o600))
	t.Setenv("TEMPORAL_CONFIG_FILE", file)
	t.Setenv("TEMPORAL_ADDRESS", "elsewhere:7233")
	t.Setenv("TEMPORAL_API_KEY", "of-elsewhere")
	for name, want := range map[string]Address{
		"default": {HostPort: "localhost:7233"},
		"cloud":   {HostPort: "prod.tmprl.example.com:7233", Headers: map[string]string{"team-name": "payments"}},
		"files": {HostPort: "temporal.example.com:7233", ServerName: "temporal",
			TLS: TLS{Mode: TLSOn, CertFile: "client.pem", KeyFile: "client.key", CAFile: "ca.pem"}},
		"texts": {TLS: TLS{Mode: TLSOn, Cert: []byte("cert"), Key: []byte("key"), CA: []byte("ca")}},
		"plain": {TLS: TLS{Mode: TLSOff}},
	} {
		got, err := Profile("", name)
		require.NoError(t, err, name)
		if name == "cloud" {
			key, err := got.apiKey()
			require.NoError(t, err)
			require.Equal(t, "s3cret", key)
		}
		require.Equal(t, name == "cloud", got.APIKey != nil, name)
		got.APIKey = nil
		require.Equal(t, want, got, name)
	}
	require.Equal(t, []string{"cloud", "default", "files", "plain", "texts", "trusting"}, Profiles())
	for name, want := range map[string]string{
		"trusting": "tls.disable_host_verification: servers are always verified",
		"clowd":    `profile "clowd" of Temporal's CLI: `,
	} {
		_, err := Profile("", name)
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, os.WriteFile(file, []byte("[profile.default]\naddr = \"localhost:7233\"\n"), 0o600))
	_, err := Profile(file, "default")
	require.ErrorContains(t, err, "addr")
}
