// Package cmdutil has what several groups of commands share. That is the state of one run of the program with its
// global flags, output, exit codes, settings, completion, and the flags and clients for repositories, Temporal,
// clusters and policies.
//
// A helper that one group uses lives in that group. cmdutil knows no group, and builds no commands.
//
// An App belongs to one run and is not safe for concurrent use. Judges, PodReader and TemporalPort are.
package cmdutil

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/internal/memorylimit"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/report"
)

// App is one run of the program: its streams, its environment, its clock, and the flags that all commands have.
type App struct {
	// Data goes to Out, everything else to Err.
	In       io.Reader
	Out, Err io.Writer
	// LookupEnv is os.LookupEnv, or what a test puts in its place.
	LookupEnv func(string) (string, bool)
	// Now gives times in UTC.
	Now func() time.Time
	// Log discards everything until Prepare.
	Log *slog.Logger
	// Memory says how much memory the process may take; nil: its limit is unknown.
	Memory memlimit.Provider
	// Hooks are called at each write to a server.
	Hooks WriteHooks

	// Dir is the folder -C; Env the environment of --env, "" for all.
	Dir, Env            string
	config              string
	logLevel, logFormat Choice
	noColor             bool
	// resourceKinds are the kinds that a WorkerResourceTemplate may make.
	resourceKinds []string
	// requireApproval says which environments have to want approval; approval is what it says.
	requireApproval, requireApprovalByOther []string
	approval                                []index.ApprovalFloor
	// allowedNamespaces and allowedTemporalNamespaces say which namespaces environments may name, allowedAddresses
	// where connections may lead; allowed is what they say.
	allowedNamespaces, allowedTemporalNamespaces, allowedAddresses []string
	allowed                                                        index.Allowed
	policies                                                       policyFlags
	// Locate picks the worker deployments for which a reader says where the repository holds what their versions name;
	// nil: none.
	Locate index.Locating
}

// allowedKinds are the kinds that a WorkerResourceTemplate may make: none where the flag is empty.
func allowedKinds(a *App) []string { return append([]string{}, a.resourceKinds...) }

// ReadOptions is how the bot's own configuration says that folders and files are read.
func (a *App) ReadOptions(more ...index.Option) []index.Option {
	return append([]index.Option{index.AllowKinds(allowedKinds(a)), index.RequireApproval(a.approval),
		index.Allow(a.allowed), index.BuildWith(builder()), index.LocateReferences(a.Locate)}, more...)
}

// parsed parses each value of a flag. The first error of all flags is kept in err.
func parsed[T any](err *error, flag string, texts []string, parse func(string) (T, error)) (out []T) {
	for _, text := range texts {
		v, wrong := parse(text)
		if wrong != nil && *err == nil {
			*err = fmt.Errorf("--%s: %w", flag, wrong)
		}
		out = append(out, v)
	}
	return out
}

// parseBounds parses the flags that bound what environments may say.
func (a *App) parseBounds() (err error) {
	a.approval = parsed(&err, "require-approval", a.requireApproval, index.ParseApprovalFloor)
	for _, f := range parsed(&err, "require-approval-by-other", a.requireApprovalByOther, index.ParseApprovalFloor) {
		f.ByOther = true
		a.approval = append(a.approval, f)
	}
	a.allowed.Namespaces = parsed(&err, "allowed-namespaces", a.allowedNamespaces, index.ParseNamespaceRule)
	a.allowed.TemporalNamespaces = parsed(&err, "allowed-temporal-namespaces", a.allowedTemporalNamespaces,
		index.ParseNamespaceRule)
	a.allowed.TemporalAddresses = parsed(&err, "allowed-temporal-addresses", a.allowedAddresses, index.ParseAddressRule)
	return err
}

// AddGlobalFlags adds the flags that all commands have, and their completion.
func (a *App) AddGlobalFlags(root *cobra.Command) {
	a.logLevel = NewChoice("info", "debug", "info", "warn", "error")
	a.logFormat = NewChoice("text", "text", "json")
	f := root.PersistentFlags()
	f.StringVarP(&a.Dir, "dir", "C", ".", "repository or folder to work on")
	f.StringVar(&a.Env, "env", "", "look at one environment only")
	f.StringVar(&a.config, "config", "", "YAML file with flags by their names")
	f.StringSliceVar(&a.resourceKinds, "allowed-resource-kinds", v1alpha1.DefaultResourceKinds(),
		"kinds that a WorkerResourceTemplate may make, as Kind or Kind.group")
	f.StringSliceVar(&a.requireApproval, "require-approval", nil,
		"environments whose raises have to be approved, whatever rampart.yaml says: GLOB[=Step], or !GLOB for all "+
			"others; repeatable")
	f.StringSliceVar(&a.requireApprovalByOther, "require-approval-by-other", nil,
		"environments whose raises need the approval of a person other than the one who asked: GLOB[=Step], or "+
			"!GLOB for all others; repeatable")
	f.StringSliceVar(&a.allowedNamespaces, "allowed-namespaces", nil,
		"namespaces that environments may have worker deployments in, as ENVIRONMENT=NAMESPACE, both globs; with "+
			"one, all others are refused; repeatable")
	f.StringSliceVar(&a.allowedTemporalNamespaces, "allowed-temporal-namespaces", nil,
		"Temporal namespaces that environments may name, as ENVIRONMENT=NAMESPACE, both globs; with one, all others "+
			"are refused; repeatable")
	f.StringSliceVar(&a.allowedAddresses, "allowed-temporal-addresses", nil,
		"addresses that the connections of environments may lead to, as ENVIRONMENT=HOST:PORT, both globs; with one, "+
			"all others are refused; repeatable")
	f.Var(&a.logLevel, "log-level", "least important messages to log: "+a.logLevel.List())
	f.Var(&a.logFormat, "log-format", "format of the log: "+a.logFormat.List())
	f.BoolVar(&a.noColor, "no-color", false, "no colors (also: NO_COLOR)")
	CompleteFlag(root, "env", a.completeEnvironments)
	CompleteFlag(root, "require-approval", a.completeEnvironments)
	CompleteFlag(root, "require-approval-by-other", a.completeEnvironments)
	CompleteFlag(root, "log-level", a.logLevel.Complete)
	CompleteFlag(root, "log-format", a.logFormat.Complete)
}

// Prepare fills in flags from variables and the file, makes the logger, and bounds the memory that the command takes.
func (a *App) Prepare(cmd *cobra.Command) error {
	if err := a.applySettings(cmd); err != nil {
		return err
	}
	if err := a.parseBounds(); err != nil {
		return err
	}
	if f := cmd.Flags().Lookup("cache-dir"); f != nil {
		a.policies.cacheDir = f.Value.String()
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel.Value)); err != nil {
		return err
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(a.Err, options)
	if a.logFormat.Value == "json" {
		handler = slog.NewJSONHandler(a.Err, options)
	}
	a.Log = slog.New(handler)
	if a.Memory != nil {
		memorylimit.Set(a.Log, a.Memory)
	}
	return nil
}

// Style says whether what goes to standard output is colored: only on a terminal, and unless someone is against it.
func (a *App) Style() report.Style {
	if v, _ := a.LookupEnv("NO_COLOR"); v != "" || a.noColor {
		return report.Plain
	}
	if v, _ := a.LookupEnv("TERM"); v == "dumb" {
		return report.Plain
	}
	f, ok := printable.Under(a.Out).(*os.File)
	if !ok {
		return report.Plain
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return report.Plain
	}
	return report.Colored
}

// Say prints a line for a person on standard error. It ignores a failed write: there is no other place to report it.
func (a *App) Say(format string, args ...any) {
	_, _ = fmt.Fprintln(a.Err, printable.Text(fmt.Sprintf(format, args...)))
}
