package cmdutil

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc/codes"

	"github.com/rampart-gitops/rampart/internal/metrics"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/temporal"
)

// TemporalFlags say how to reach Temporal, and with which credentials.
type TemporalFlags struct {
	Address, serverName, profile        string
	certFile, keyFile, caFile, keyInput string
	mode                                Choice
	connections                         string
	gateInputDir, gateKey               string
	prometheus                          metrics.Config
	maxVersions                         versionLimit
}

// variableAPIKey is the variable of a secret, as those for Git are.
const variableAPIKey = "RAMPART_TEMPORAL_API_KEY"

// Add adds the flags of a command that connects to Temporal.
func (f *TemporalFlags) Add(cmd *cobra.Command) {
	f.mode = NewChoice("auto", "auto", "on", "off")
	fs := cmd.Flags()
	fs.StringVar(&f.Address, "temporal-address", "",
		"host:port to use for every connection (default: what the connections in Git say)")
	fs.StringVar(&f.profile, "temporal-profile", "", "profile of Temporal's CLI with the address and credentials to "+
		"use for every connection (TEMPORAL_CONFIG_FILE names its file)")
	fs.Var(&f.mode, "temporal-tls",
		"TLS to --temporal-address: auto (where credentials or a server name are given), on, off")
	fs.StringVar(&f.certFile, "temporal-tls-cert", "", "client certificate, PEM")
	fs.StringVar(&f.keyFile, "temporal-tls-key", "", "key of the client certificate, PEM")
	fs.StringVar(&f.caFile, "temporal-tls-ca", "", "authorities to trust beside the system's, PEM")
	fs.StringVar(&f.serverName, "temporal-tls-server-name", "", "name to expect in the server's certificate")
	fs.StringVar(&f.keyInput, "temporal-api-key-file", "", "file with an API key (or "+variableAPIKey+")")
	fs.StringVar(&f.connections, "temporal-connections", "",
		"YAML file: address and credentials for each connection, by namespace/name or host:port")
	fs.StringVar(&f.gateInputDir, "gate-inputs", "",
		"folder with the inputs of gates that come from a ConfigMap or Secret: "+
			"<namespace>/configmaps|secrets/<name>/<key>")
	fs.StringVar(&f.gateKey, "gate-key-file", "",
		"file with a key, 32 bytes or more, that is the same for every run: gates with an input from a Secret need it")
	fs.StringVar(&f.prometheus.Address, "prometheus-address", "",
		"Prometheus that analysis.metrics of specs are asked of, such as https://prometheus.example.com")
	fs.StringVar(&f.prometheus.BearerTokenFile, "prometheus-token-file", "", "file with a bearer token for it")
	fs.StringVar(&f.prometheus.CAFile, "prometheus-ca-file", "",
		"authorities to trust for it instead of the system's, PEM")
	fs.DurationVar(&f.prometheus.Timeout, "prometheus-timeout", metrics.DefaultTimeout,
		"time for one query; all of a cycle get twice as much together")
	CompleteFlag(cmd, "temporal-tls", f.mode.Complete)
	CompleteFlag(cmd, "temporal-profile", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return temporal.Profiles(), cobra.ShellCompDirectiveNoFileComp
	})
}

// PoolHooks are called after each request to a Temporal; a nil hook is not called.
type PoolHooks struct {
	Call func(method string, code codes.Code, took time.Duration)
	// InFull says that a person reads what goes wrong, and that it gets into no repository.
	InFull bool
}

// OpenPool makes the connections to Temporal. The bot's credentials go to addresses of its own configuration only.
// Close the pool.
func (a *App) OpenPool(f TemporalFlags, hooks PoolHooks) (*temporal.Pool, error) {
	cfg := temporal.Config{Log: a.Log, Identity: "rampart", Clock: a.Now, OnWrite: a.Hooks.Temporal, OnCall: hooks.Call,
		InFull: hooks.InFull}
	if host, err := os.Hostname(); err == nil {
		cfg.Identity += "@" + host
	}
	own := temporal.Address{HostPort: f.Address, ServerName: f.serverName, APIKeyFile: f.keyInput,
		TLS: temporal.TLS{Mode: tlsMode(f.mode.Value), CertFile: f.certFile, KeyFile: f.keyFile, CAFile: f.caFile}}
	if key, ok := a.LookupEnv(variableAPIKey); ok && key != "" && own.APIKeyFile == "" {
		own.APIKey = func() (string, error) { return key, nil }
	}
	credentials := own.ServerName+own.APIKeyFile+f.certFile+f.keyFile+f.caFile+string(own.TLS.Mode) != "" ||
		own.APIKey != nil
	switch {
	case f.profile != "" && (f.Address != "" || credentials):
		return nil, errors.New("--temporal-profile has an address and credentials of its own: leave out " +
			"--temporal-address, and TLS and API key flags")
	case f.profile != "":
		profile, err := profileAddress(f.profile)
		if err != nil {
			return nil, err
		}
		cfg.Override = &profile
	case f.Address != "":
		if _, _, err := net.SplitHostPort(f.Address); err != nil {
			return nil, fmt.Errorf("--temporal-address is not host:port, such as temporal.example.com:7233: %w", err)
		}
		cfg.Override = &own
	case credentials:
		return nil, errors.New("TLS and API key flags go with --temporal-address; give each connection its own in " +
			"the file of --temporal-connections")
	}
	if f.connections != "" {
		if cfg.Override != nil {
			return nil, errors.New("--temporal-connections excludes --temporal-address and --temporal-profile; a " +
				"connection in its file may name a profile")
		}
		var err error
		if cfg.Connections, err = readConnections(f.connections); err != nil {
			return nil, fmt.Errorf("read --temporal-connections %s: %w", f.connections, err)
		}
	}
	return temporal.New(cfg), nil
}

// profileAddress is the address of a profile of Temporal's CLI, which has to name one.
func profileAddress(name string) (temporal.Address, error) {
	a, err := temporal.Profile("", name)
	if err == nil && a.HostPort == "" {
		err = fmt.Errorf("profile %q of Temporal's CLI has no address: add address = \"host:port\"", name)
	}
	return a, err
}

func tlsMode(flag string) temporal.TLSMode {
	switch flag {
	case "on":
		return temporal.TLSOn
	case "off":
		return temporal.TLSOff
	}
	return temporal.TLSAuto
}

// readConnections reads the file of --temporal-connections: settings by a connection's namespace/name or host:port.
// Files in it are relative to it.
func readConnections(name string) (map[string]temporal.Address, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var entries map[string]map[string]string
	if err := yaml.Unmarshal(data, &entries); err != nil {
		return nil, err
	}
	out := make(map[string]temporal.Address, len(entries))
	for _, key := range SortedKeys(entries) {
		var a temporal.Address
		mode := "auto"
		profile := ""
		settings := map[string]*string{"address": &a.HostPort, "serverName": &a.ServerName, "tls": &mode,
			"profile": &profile}
		files := map[string]*string{"certFile": &a.TLS.CertFile, "keyFile": &a.TLS.KeyFile, "caFile": &a.TLS.CAFile,
			"apiKeyFile": &a.APIKeyFile}
		for _, setting := range SortedKeys(entries[key]) {
			value := entries[key][setting]
			to, ok := settings[setting]
			if file, isFile := files[setting]; isFile {
				to, ok = file, true
				if value != "" && !filepath.IsAbs(value) {
					value = filepath.Join(filepath.Dir(name), value)
				}
			}
			if !ok {
				return nil, fmt.Errorf("%s: %w", key,
					NotFound("setting", setting, slices.Concat(SortedKeys(settings), SortedKeys(files))))
			}
			*to = value
		}
		if profile != "" {
			if len(entries[key]) > 1 {
				return nil, fmt.Errorf("%s: profile has an address and credentials of its own: leave out the "+
					"other settings", key)
			}
			if out[key], err = profileAddress(profile); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			continue
		}
		if !slices.Contains([]string{"auto", "on", "off"}, mode) {
			return nil, fmt.Errorf("%s: tls is auto, on or off, not %q", key, mode)
		}
		if a.HostPort != "" {
			if _, _, err := net.SplitHostPort(a.HostPort); err != nil {
				return nil, fmt.Errorf("%s: address is not host:port: %w", key, err)
			}
		}
		a.TLS.Mode = tlsMode(mode)
		out[key] = a
	}
	return out, nil
}

// TemporalPort is the router and the version API of a cycle: a pool that starts gates with the inputs that the bot was
// given.
type TemporalPort struct {
	*temporal.Pool
	Inputs GateInputs
}

var (
	_ reconcile.Router     = TemporalPort{}
	_ reconcile.VersionAPI = TemporalPort{}
)
