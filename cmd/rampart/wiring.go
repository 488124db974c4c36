package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/mirror"
	"github.com/rampart-gitops/rampart/internal/bundles"
	"github.com/rampart-gitops/rampart/internal/metrics"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/temporal"
)

// repositoryFlags say where the repository is and how to log in.
type repositoryFlags struct {
	url, branch, cacheDir             string
	user, tokenFile, caFile           string
	keyFile, passphraseFile, hostKeys string
	author, email                     string
	signing                           signingFlags
}

// The variables of secrets, which are no flags: a flag is seen by everybody who may list processes.
const (
	variableGitToken      = "RAMPART_GIT_TOKEN"
	variableKeyPassphrase = "RAMPART_GIT_SSH_PASSPHRASE"
	variableAPIKey        = "RAMPART_TEMPORAL_API_KEY"
)

// addReading adds the flags of a command that reads a repository.
func (f *repositoryFlags) addReading(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.url, "repo", "", "repository: https://, ssh://, user@host:path, file:///path")
	fs.StringVar(&f.branch, "branch", "main", "branch that the specs are on")
	fs.StringVar(&f.cacheDir, "cache-dir", "", "folder of mirrors, safe to delete (default: rampart in the user's cache folder)")
	fs.StringVar(&f.user, "git-user", "", "user name that goes with the token")
	fs.StringVar(&f.tokenFile, "git-token-file", "", "file with a token or password for HTTPS (or "+variableGitToken+")")
	fs.StringVar(&f.caFile, "git-ca-file", "", "PEM file of authorities to trust for HTTPS beside the system's")
	fs.StringVar(&f.keyFile, "git-ssh-key-file", "", "private key for SSH")
	fs.StringVar(&f.passphraseFile, "git-ssh-passphrase-file", "", "file with the key's passphrase (or "+variableKeyPassphrase+")")
	fs.StringVar(&f.hostKeys, "git-known-hosts", "", "known_hosts file for SSH (default: the user's)")
	f.signing.addReading(cmd)
}

// addWriting adds the flags of a command that commits.
func (f *repositoryFlags) addWriting(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.author, "author", "rampart", "author of commits")
	cmd.Flags().StringVar(&f.email, "email", "rampart@localhost", "e-mail address of commits' author")
	f.signing.addWriting(cmd)
}

// auth gives the credentials of the bot's own configuration.
func (a *app) auth(f repositoryFlags) mirror.Auth {
	auth := mirror.Auth{User: f.user, CAFile: f.caFile, KnownHosts: f.hostKeys, Proxy: http.ProxyFromEnvironment}
	auth.Password = a.secret(f.tokenFile, variableGitToken)
	auth.SSHPassphrase = a.secret(f.passphraseFile, variableKeyPassphrase)
	if f.keyFile != "" {
		auth.SSHKey = mirror.SecretFile(f.keyFile)
	}
	if auth.KnownHosts == "" {
		if home, err := os.UserHomeDir(); err == nil {
			if file := filepath.Join(home, ".ssh", "known_hosts"); isFile(file) {
				auth.KnownHosts = file
			}
		}
	}
	return auth
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// secret comes from a file, else from a variable, else there is none.
func (a *app) secret(file, variable string) mirror.Secret {
	if file != "" {
		return mirror.SecretFile(file)
	}
	if v, ok := a.variable(variable); ok && v != "" {
		return mirror.SecretValue(v)
	}
	return nil
}

// cacheDir is the folder of --cache-dir, else the user's.
func cacheDir(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for what is downloaded, give one with --cache-dir: %w", err)
	}
	return filepath.Join(user, "rampart"), nil
}

// repository opens the mirror of --repo.
func (a *app) repository(f repositoryFlags, onWrite func(gitops.Moment)) (*gitops.Repository, error) {
	dir, err := cacheDir(f.cacheDir)
	if err != nil {
		return nil, err
	}
	cfg := gitops.Config{URL: f.url, Branch: f.branch, CacheDir: dir, Auth: a.auth(f), Author: f.author, Email: f.email,
		ResourceKinds: a.allowedKinds(), Approval: a.approval, Log: a.log, Now: a.now, OnWrite: onWrite}
	if err := a.signing(context.Background(), f.signing, &cfg); err != nil {
		return nil, err
	}
	return gitops.Open(cfg)
}

// source is where a command that writes nothing reads from: the branch of --repo, else the folder -C. close gives it back.
func (a *app) source(f repositoryFlags) (source reconcile.Source, close func() error, err error) {
	if f.url == "" {
		if err := isFolder(a.dir); err != nil {
			return nil, nil, err
		}
		return a.only(folder{a.dir, a.reading()}), func() error { return nil }, nil
	}
	repo, closeRepo, err := a.shortLived(f, nil)
	if err != nil {
		return nil, nil, err
	}
	return a.only(repo), closeRepo, nil
}

// shortLived opens the repository for one command, with a mirror for the time being where the bot works on the other one.
func (a *app) shortLived(f repositoryFlags, onWrite func(gitops.Moment)) (*gitops.Repository, func() error, error) {
	repo, err := a.repository(f, onWrite)
	var locked *mirror.LockedError
	if !errors.As(err, &locked) {
		if err != nil {
			return nil, nil, err
		}
		return repo, repo.Close, nil
	}
	dir, err := os.MkdirTemp("", "rampart-mirror-")
	if err != nil {
		return nil, nil, errors.Join(locked, err)
	}
	f.cacheDir = dir
	if repo, err = a.repository(f, onWrite); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return repo, func() error { return errors.Join(repo.Close(), os.RemoveAll(dir)) }, nil
}

// folder is a Source that reads a folder as it is on disk.
type folder struct {
	dir     string
	options []gitops.Option
}

func (f folder) Read(context.Context) (rollout.World, error) {
	return gitops.ReadFolder(f.dir, f.options...)
}

// only is a source for --env.
func (a *app) only(s reconcile.Source) reconcile.Source {
	if a.env == "" {
		return s
	}
	return oneEnvironment{s, a.env}
}

type oneEnvironment struct {
	reconcile.Source
	name string
}

func (s oneEnvironment) Read(ctx context.Context) (rollout.World, error) {
	world, err := s.Source.Read(ctx)
	if err != nil {
		return world, err
	}
	return onlyEnvironment(world, s.name)
}

// Origins asks the source behind, if that has a history.
func (s oneEnvironment) Origins(ctx context.Context, snapshots []rollout.Snapshot) ([]rollout.GitContext, error) {
	return originsOf(ctx, s.Source, snapshots)
}

func originsOf(ctx context.Context, source reconcile.Source, snapshots []rollout.Snapshot) ([]rollout.GitContext, error) {
	if historian, ok := source.(reconcile.Historian); ok {
		return historian.Origins(ctx, snapshots)
	}
	out := make([]rollout.GitContext, len(snapshots))
	for i, d := range snapshots {
		out[i] = d.Git
	}
	return out, nil
}

// onlyEnvironment leaves out all environments but one; "" leaves all. A world that could not be read has none: its
// problems say why.
func onlyEnvironment(world rollout.World, name string) (rollout.World, error) {
	if name == "" || len(world.Environments) == 0 {
		return world, nil
	}
	var known []string
	for _, env := range world.Environments {
		if env.Environment.Name == name {
			world.Environments = []rollout.EnvironmentWorld{env}
			return world, nil
		}
		known = append(known, env.Environment.Name)
	}
	return world, notFound("environment", name, known)
}

// temporalFlags say how to reach Temporal, and with which credentials.
type temporalFlags struct {
	address, serverName                 string
	certFile, keyFile, caFile, keyInput string
	mode                                choice
	connections                         string
	gateInputDir, gateKey               string
	prometheus                          metrics.Config
}

func (a *app) addTemporal(cmd *cobra.Command, f *temporalFlags) {
	f.mode = newChoice("auto", "auto", "on", "off")
	fs := cmd.Flags()
	fs.StringVar(&f.address, "temporal-address", "", "host:port to use for every connection (default: what the connections in Git say)")
	fs.Var(&f.mode, "temporal-tls", "TLS to --temporal-address: auto (where credentials or a server name are given), on, off")
	fs.StringVar(&f.certFile, "temporal-tls-cert", "", "client certificate, PEM")
	fs.StringVar(&f.keyFile, "temporal-tls-key", "", "key of the client certificate, PEM")
	fs.StringVar(&f.caFile, "temporal-tls-ca", "", "authorities to trust beside the system's, PEM")
	fs.StringVar(&f.serverName, "temporal-tls-server-name", "", "name to expect in the server's certificate")
	fs.StringVar(&f.keyInput, "temporal-api-key-file", "", "file with an API key (or "+variableAPIKey+")")
	fs.StringVar(&f.connections, "temporal-connections", "", "YAML file: address and credentials for each connection, by namespace/name or host:port")
	fs.StringVar(&f.gateInputDir, "gate-inputs", "",
		"folder with the inputs of gates that come from a ConfigMap or Secret: <namespace>/configmaps|secrets/<name>/<key>")
	fs.StringVar(&f.gateKey, "gate-key-file", "",
		"file with a key, 32 bytes or more, that is the same for every run: gates with an input from a Secret need it")
	fs.StringVar(&f.prometheus.Address, "prometheus-address", "", "Prometheus that analysis.metrics of specs are asked of, such as https://prometheus.example.com")
	fs.StringVar(&f.prometheus.BearerTokenFile, "prometheus-token-file", "", "file with a bearer token for it")
	fs.StringVar(&f.prometheus.CAFile, "prometheus-ca-file", "", "authorities to trust for it instead of the system's, PEM")
	fs.DurationVar(&f.prometheus.Timeout, "prometheus-timeout", metrics.DefaultTimeout, "time for one query; all of a cycle get twice as much together")
	a.completeFlag(cmd, "temporal-tls", f.mode.complete)
}

// pool makes the connections to Temporal. The bot's credentials go to addresses of its own configuration only.
func (a *app) pool(f temporalFlags, onWrite func(temporal.Site, temporal.Moment)) (*temporal.Pool, error) {
	cfg := temporal.Config{Log: a.log, Identity: "rampart", Clock: a.now, OnWrite: onWrite}
	if host, err := os.Hostname(); err == nil {
		cfg.Identity += "@" + host
	}
	own := temporal.Address{HostPort: f.address, ServerName: f.serverName, APIKeyFile: f.keyInput,
		TLS: temporal.TLS{Mode: tlsMode(f.mode.value), CertFile: f.certFile, KeyFile: f.keyFile, CAFile: f.caFile}}
	if key, ok := a.variable(variableAPIKey); ok && key != "" && own.APIKeyFile == "" {
		own.APIKey = func() (string, error) { return key, nil }
	}
	switch {
	case f.address != "":
		cfg.Override = &own
	case own.ServerName+own.APIKeyFile+f.certFile+f.keyFile+f.caFile+string(own.TLS.Mode) != "" || own.APIKey != nil:
		return nil, errors.New("TLS and API key flags go with --temporal-address; give each connection its own in the file of --temporal-connections")
	}
	if f.connections != "" {
		if cfg.Override != nil {
			return nil, errors.New("--temporal-address and --temporal-connections exclude each other")
		}
		var err error
		if cfg.Connections, err = readConnections(f.connections); err != nil {
			return nil, fmt.Errorf("read --temporal-connections %s: %w", f.connections, err)
		}
	}
	return temporal.New(cfg), nil
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

// readConnections reads the file of --temporal-connections: settings by a connection's namespace/name or host:port. Files in
// it are relative to it.
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
	for _, key := range sortedKeys(entries) {
		var a temporal.Address
		mode := "auto"
		settings := map[string]*string{"address": &a.HostPort, "serverName": &a.ServerName, "tls": &mode}
		files := map[string]*string{"certFile": &a.TLS.CertFile, "keyFile": &a.TLS.KeyFile, "caFile": &a.TLS.CAFile, "apiKeyFile": &a.APIKeyFile}
		for _, setting := range sortedKeys(entries[key]) {
			value := entries[key][setting]
			to, ok := settings[setting]
			if file, isFile := files[setting]; isFile {
				to, ok = file, true
				if value != "" && !filepath.IsAbs(value) {
					value = filepath.Join(filepath.Dir(name), value)
				}
			}
			if !ok {
				return nil, fmt.Errorf("%s: %w", key, notFound("setting", setting, slices.Concat(sortedKeys(settings), sortedKeys(files))))
			}
			*to = value
		}
		if !slices.Contains([]string{"auto", "on", "off"}, mode) {
			return nil, fmt.Errorf("%s: tls is auto, on or off, not %q", key, mode)
		}
		a.TLS.Mode = tlsMode(mode)
		out[key] = a
	}
	return out, nil
}

// parallel is how many worker deployments are observed at once: the calls' budget is what bounds them.
const parallel = 16

// ends are what a planner reads from and asks.
type ends struct {
	source   reconcile.Source
	observer reconcile.Observer
	judges   *judges
}

func (a *app) planner(e ends, f temporalFlags) (*reconcile.Planner, error) {
	store, err := f.metrics()
	if err != nil {
		return nil, err
	}
	var inputs reconcile.Inputs
	if f.gateInputDir != "" {
		if inputs, err = f.gateInputs(); err != nil {
			return nil, err
		}
	}
	return &reconcile.Planner{Inputs: inputs, Metrics: store, Source: judged{e.source, e.judges}, Observer: e.observer,
		Limits: rollout.DefaultLimits(), Now: a.now, Log: a.log, Parallel: parallel, Own: e.judges.facts,
		JudgeFor: func(env rollout.EnvironmentWorld) reconcile.Judge { return e.judges.engine(env) }}, nil
}

// bot wires a Reconciler. close gives its mirror and its connections back.
func (a *app) bot(repository repositoryFlags, server temporalFlags, judges *judges) (bot *reconcile.Reconciler, close func() error, err error) {
	hooks, err := a.faults()
	if err != nil {
		return nil, nil, err
	}
	pool, err := a.pool(server, hooks.temporal)
	if err != nil {
		return nil, nil, err
	}
	repo, err := a.repository(repository, hooks.push)
	if err != nil {
		return nil, nil, errors.Join(err, pool.Close())
	}
	planner, err := a.planner(ends{a.only(repo), pool, judges}, server)
	if err != nil {
		return nil, nil, errors.Join(err, repo.Close(), pool.Close())
	}
	inputs, err := server.gateInputs()
	if err != nil {
		return nil, nil, errors.Join(err, repo.Close(), pool.Close())
	}
	port := temporalPort{pool, inputs, a.log}
	return &reconcile.Reconciler{Planner: planner, Committer: repo, Router: port, Helper: port, Lister: pool},
		func() error { return errors.Join(repo.Close(), pool.Close()) }, nil
}

// writeHooks are told of each write to a server; nil: nobody.
type writeHooks struct {
	push      func(gitops.Moment)
	decisions func(gitops.Moment)
	temporal  func(temporal.Site, temporal.Moment)
}

// temporalPort fits a pool to what a cycle asks of Temporal.
type temporalPort struct {
	pool   *temporal.Pool
	inputs gateInputs
	log    *slog.Logger
}

var (
	_ reconcile.Source    = (*gitops.Repository)(nil)
	_ reconcile.Historian = (*gitops.Repository)(nil)
	_ reconcile.Historian = oneEnvironment{}
	_ reconcile.Historian = judged{}
	_ reconcile.Committer = (*gitops.Repository)(nil)
	_ reconcile.Judge     = (*policy.Engine)(nil)
	_ reconcile.Observer  = (*temporal.Pool)(nil)
	_ reconcile.Lister    = (*temporal.Pool)(nil)
	_ reconcile.Router    = temporalPort{}
	_ reconcile.Helper    = temporalPort{}
)

func targetOf(on reconcile.Subject) temporal.Target {
	return temporal.Target{Connection: on.Connection, TemporalNamespace: on.TemporalNamespace, Deployment: on.Deployment}
}

func (t temporalPort) Lower(ctx context.Context, on reconcile.Subject, call rollout.RoutingCall) error {
	done, err := t.pool.Lower(ctx, targetOf(on), call)
	for _, q := range done.LeftBehind {
		t.log.WarnContext(ctx, "a task queue was left behind: its tasks go to unversioned workers", "deployment", on.Deployment.String(),
			"taskQueue", q.Name, "type", string(q.Type))
	}
	return err
}

func (t temporalPort) Raise(ctx context.Context, on reconcile.Subject, call rollout.RoutingCall) error {
	_, err := t.pool.Raise(ctx, targetOf(on), call)
	return err
}

func (t temporalPort) DeleteVersion(ctx context.Context, on reconcile.Subject, buildID string) (rollout.Deletion, error) {
	return t.pool.DeleteVersion(ctx, targetOf(on), temporal.VersionCall{BuildID: buildID, Identity: on.Identity})
}

func (t temporalPort) StartBatch(ctx context.Context, on reconcile.Subject, start rollout.BatchStart) error {
	return t.pool.StartBatch(ctx, targetOf(on), start)
}

// judges compiles policies once for each content, those of an environment and the bot's own: those that take long to compile keep no
// other environment waiting. It is safe for concurrent use.
type judges struct {
	// store has the bot's own policies; nil: it has none.
	store    *bundles.Store
	waivable []string

	mu      sync.Mutex
	engines map[[sha256.Size]byte]func() *policy.Engine
	// floor is what of the store counts until pin is called again: one decision is made with the same policies from start to end.
	floor bundles.Floor
}

// openJudges opens the bot's own policies as they are on disk.
func (a *app) openJudges() (*judges, error) {
	store, err := a.floor()
	if err != nil {
		return nil, err
	}
	j := &judges{store: store, waivable: a.policies.waivable}
	j.pin()
	return j, nil
}

// judges are the policies as they are now, for a command that decides once.
func (a *app) judges(ctx context.Context) (*judges, error) {
	j, err := a.openJudges()
	if err != nil || j.store == nil {
		return j, err
	}
	j.refresh(ctx)
	return j, ctx.Err()
}

// refresh waits for what is in force at the servers, for one time limit at most.
func (j *judges) refresh(ctx context.Context) {
	if j.store != nil {
		j.store.Refresh(ctx)
		j.pin()
	}
}

func (j *judges) close() {
	if j.store != nil {
		j.store.Close()
	}
}

// pin takes over what is in force now.
func (j *judges) pin() {
	if j.store == nil {
		return
	}
	floor := j.store.Floor()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.floor = floor
}

// facts are the bot's own.
func (j *judges) facts() map[string]rollout.Fact {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.floor.Facts
}

// judged is a Source with which the policies are read anew too, whether or not the repository can be read.
type judged struct {
	reconcile.Source
	judges *judges
}

func (s judged) Read(ctx context.Context) (rollout.World, error) {
	s.judges.pin()
	return s.Source.Read(ctx)
}

// Origins asks the source behind, if that has a history.
func (s judged) Origins(ctx context.Context, snapshots []rollout.Snapshot) ([]rollout.GitContext, error) {
	return originsOf(ctx, s.Source, snapshots)
}

// maxEngines is how many compiled policies are kept: those of all environments, and a few of before.
const maxEngines = 32

func (j *judges) engine(env rollout.EnvironmentWorld) *policy.Engine {
	floor := j.pinned()
	h := sha256.New()
	h.Write([]byte(floor.Key + "\n"))
	for _, f := range env.Policies {
		h.Write(fmt.Appendf(nil, "policy %q %d\n%s", f.Path, len(f.Text), f.Text))
	}
	for _, f := range env.Data {
		h.Write(fmt.Appendf(nil, "data %q %d\n%s", f.Path, len(f.Text), f.Text))
	}
	for _, p := range env.PolicyProblems {
		h.Write(fmt.Appendf(nil, "problem %q\n", p.String()))
	}
	key := [sha256.Size]byte(h.Sum(nil))
	return j.once(key, j.config(env, floor))()
}

// config is what an environment is judged by: its policies, and the bot's own.
func (j *judges) config(env rollout.EnvironmentWorld, floor bundles.Floor) policy.Config {
	cfg := policyConfig(env)
	cfg.Floor, cfg.Waivable = floor.Layers, j.waivable
	return cfg
}

// pinned are the bot's own policies that count now.
func (j *judges) pinned() bundles.Floor {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.floor
}

// once gives what compiles a content, the first time that it is called.
func (j *judges) once(key [sha256.Size]byte, cfg policy.Config) func() *policy.Engine {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e, ok := j.engines[key]; ok {
		return e
	}
	if len(j.engines) >= maxEngines || j.engines == nil {
		j.engines = map[[sha256.Size]byte]func() *policy.Engine{}
	}
	j.engines[key] = sync.OnceValue(func() *policy.Engine { return policy.Compile(cfg) })
	return j.engines[key]
}

// notFound says that something is not there, and what is.
func notFound(what, name string, known []string) error {
	slices.Sort(known)
	known = slices.Compact(known)
	if near := nearest(name, known); near != "" {
		return fmt.Errorf("there is no %s %q (did you mean %s?)", what, name, near)
	}
	const most = 10
	list := cmp.Or(joinSome(known, most), "none")
	return fmt.Errorf("there is no %s %q; there is: %s", what, name, list)
}
