package temporal

import (
	"fmt"
	"maps"
	"slices"

	"go.temporal.io/sdk/contrib/envconfig"
)

// Profile reads a profile of Temporal's CLI from a file in TOML. The address, credentials and headers count, and not
// the namespace, which is that of a spec. "" is the file that TEMPORAL_CONFIG_FILE names, or else
// temporalio/temporal.toml of the user's configuration folder; other variables of the environment do not change a
// profile. Files that the profile names are read with every connection, the profile itself once.
//
// It fails where there is no such profile, on unknown keys, and where the profile turns the verification of servers
// off.
func Profile(file, name string) (Address, error) {
	p, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{
		ConfigFilePath: file, ConfigFileProfile: name, ConfigFileStrict: true, DisableEnv: true})
	if err != nil {
		return Address{}, fmt.Errorf("profile %q of Temporal's CLI: %w", name, err)
	}
	a := Address{HostPort: p.Address, Headers: p.GRPCMeta, Authority: p.Authority}
	if p.APIKey != "" {
		a.APIKey = func() (string, error) { return p.APIKey, nil }
	}
	t := p.TLS
	if t == nil {
		return a, nil
	}
	if t.DisableHostVerification {
		return Address{}, fmt.Errorf("profile %q of Temporal's CLI: tls.disable_host_verification: servers are "+
			"always verified; name the authority (server_ca_cert_path) and the name in the certificate (server_name)",
			name)
	}
	a.ServerName = t.ServerName
	a.TLS = TLS{Mode: TLSOn, CertFile: t.ClientCertPath, KeyFile: t.ClientKeyPath, CAFile: t.ServerCACertPath,
		Cert: t.ClientCertData, Key: t.ClientKeyData, CA: t.ServerCACertData}
	if t.Disabled {
		a.TLS.Mode = TLSOff
	}
	return a, nil
}

// Profiles are the names of the profiles of Temporal's CLI, sorted; none where its file cannot be read.
func Profiles() []string {
	config, err := envconfig.LoadClientConfig(envconfig.LoadClientConfigOptions{})
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Profiles))
}
