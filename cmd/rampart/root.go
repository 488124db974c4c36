package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/report"
)

// app is one run of the program: its streams, its environment, its clock, and the flags that all commands have.
type app struct {
	in       io.Reader
	out, err io.Writer
	variable func(string) (string, bool)
	now      func() time.Time
	log      *slog.Logger
	// memory is what limits the process; nil: nothing is known of it.
	memory memlimit.Provider

	dir, env, config    string
	logLevel, logFormat choice
	noColor             bool
	// resourceKinds are the kinds that a WorkerResourceTemplate may make.
	resourceKinds []string
	// requireApproval says which environments have to want approval; approval is what it says.
	requireApproval, requireOther []string
	approval                      []gitops.ApprovalFloor
	// allowedNamespaces and allowedTemporal say which namespaces environments may name; namespaces is what they say.
	allowedNamespaces, allowedTemporal []string
	namespaces                         gitops.Namespaces
	// allowedAddresses say where connections may lead; addresses is what they say.
	allowedAddresses []string
	addresses        []gitops.AddressRule
	policies         policyFlags
	// locate picks the worker deployments for which a reader says where the repository holds what their versions name;
	// nil: none.
	locate gitops.Locating
}

// allowedKinds are the kinds that a WorkerResourceTemplate may make: none where the flag is empty.
func (a *app) allowedKinds() []string { return append([]string{}, a.resourceKinds...) }

// reading is how the bot's own configuration says that folders and files are read.
func (a *app) reading(more ...gitops.Option) []gitops.Option {
	return append([]gitops.Option{gitops.AllowKinds(a.allowedKinds()), gitops.RequireApproval(a.approval), gitops.AllowNamespaces(a.namespaces),
		gitops.AllowAddresses(a.addresses), gitops.BuildWith(builder()), gitops.LocateReferences(a.locate)}, more...)
}

func (a *app) parseApproval() error {
	a.approval = nil
	for _, text := range a.requireApproval {
		f, err := gitops.ParseApprovalFloor(text)
		if err != nil {
			return fmt.Errorf("--require-approval: %w", err)
		}
		a.approval = append(a.approval, f)
	}
	for _, text := range a.requireOther {
		f, err := gitops.ParseApprovalFloor(text)
		if err != nil {
			return fmt.Errorf("--require-approval-by-other: %w", err)
		}
		f.ByOther = true
		a.approval = append(a.approval, f)
	}
	return nil
}

func (a *app) parseNamespaces() error {
	a.namespaces = gitops.Namespaces{}
	for _, list := range []struct {
		flag  string
		texts []string
		to    *[]gitops.NamespaceRule
	}{{"allowed-namespaces", a.allowedNamespaces, &a.namespaces.Kubernetes}, {"allowed-temporal-namespaces", a.allowedTemporal, &a.namespaces.Temporal}} {
		for _, text := range list.texts {
			rule, err := gitops.ParseNamespaceRule(text)
			if err != nil {
				return fmt.Errorf("--%s: %w", list.flag, err)
			}
			*list.to = append(*list.to, rule)
		}
	}
	a.addresses = nil
	for _, text := range a.allowedAddresses {
		rule, err := gitops.ParseAddressRule(text)
		if err != nil {
			return fmt.Errorf("--allowed-temporal-addresses: %w", err)
		}
		a.addresses = append(a.addresses, rule)
	}
	return nil
}

// run runs the program and gives its exit code.
func run(args []string) int {
	a := &app{in: os.Stdin, out: printable.NewWriter(os.Stdout), err: printable.NewWriter(os.Stderr), variable: os.LookupEnv, memory: memlimit.FromCgroup,
		now: func() time.Time { return time.Now().UTC() }, log: slog.New(slog.DiscardHandler)}
	ctx, cancel := untilSignal(context.Background())
	defer cancel()
	root := a.newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	a.complain(ctx, err)
	return codeOf(ctx, err)
}

// complain says on standard error what went wrong, and what to do about it.
func (a *app) complain(ctx context.Context, err error) {
	var e *exit
	if err == nil || errors.As(err, &e) && e.err == nil {
		return
	}
	if s := signalOf(ctx); s != nil && errors.Is(err, context.Canceled) {
		err = s
	}
	a.say("rampart: %s", strings.TrimSpace(err.Error()))
	if h := hint(err); h != "" {
		a.say("  %s", h)
	}
}

func (a *app) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "rampart",
		Short: "Roll out Temporal workers through Git",
		Long: `Rampart rolls out Temporal workers through Git. It reads TemporalWorkerDeployment specs from a repository, asks
Temporal which versions are current, ramping, draining and drained, asks policies what may happen next, and commits
versioned Deployments, the desired routing and the status back to Git.

Every flag can be given as a variable (--repo as RAMPART_REPO, --log-level as RAMPART_LOG_LEVEL) or in the YAML file
that --config names, under the flag's name. A flag wins over a variable, a variable over the file.

Data goes to standard output, everything else to standard error. Exit codes: 0 fine or nothing to do; 1 error;
2 changes are pending, something is not ready, or policy refuses; 130 and 143 stopped by SIGINT and SIGTERM.`,
		Example: `  rampart validate
  rampart render | kubectl diff -f -
  rampart run --repo https://git.example.com/team/workers.git --branch main
  rampart status`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.prepare(cmd) },
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(&cobra.Command{Use: "help [COMMAND]", Short: "Help about a command", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return fmt.Errorf("unknown command %q", strings.Join(args, " "))
			}
			return found.Help()
		}})
	a.addGlobalFlags(root)
	for _, group := range [][]*cobra.Command{a.botCommands(), a.inspectCommands(), a.operatorCommands(), a.specsCommands(), a.policyTopCommands(), a.installCommands(), a.takeoverCommands()} {
		root.AddCommand(group...)
	}
	root.AddCommand(a.versionCommand(), a.completionCommand())
	root.AddCommand(foreignCommands()...)
	addFaults(root)
	a.completeRest(root)
	return root
}

// addGlobalFlags adds the flags that all commands have, and their completion.
func (a *app) addGlobalFlags(root *cobra.Command) {
	a.logLevel = newChoice("info", "debug", "info", "warn", "error")
	a.logFormat = newChoice("text", "text", "json")
	f := root.PersistentFlags()
	f.StringVarP(&a.dir, "dir", "C", ".", "repository or folder to work on")
	f.StringVar(&a.env, "env", "", "look at one environment only")
	f.StringVar(&a.config, "config", "", "YAML file with flags by their names")
	f.StringSliceVar(&a.resourceKinds, "allowed-resource-kinds", v1alpha1.DefaultResourceKinds(),
		"kinds that a WorkerResourceTemplate may make, as Kind or Kind.group")
	f.StringSliceVar(&a.requireApproval, "require-approval", nil,
		"environments whose raises have to be approved, whatever rampart.yaml says: GLOB[=Step], or !GLOB for all others; repeatable")
	f.StringSliceVar(&a.requireOther, "require-approval-by-other", nil,
		"environments whose raises somebody other than who asked has to approve: GLOB[=Step], or !GLOB for all others; repeatable")
	f.StringSliceVar(&a.allowedNamespaces, "allowed-namespaces", nil,
		"namespaces that environments may have worker deployments in, as ENVIRONMENT=NAMESPACE, both globs; with one, all others are refused; repeatable")
	f.StringSliceVar(&a.allowedTemporal, "allowed-temporal-namespaces", nil,
		"Temporal namespaces that environments may name, as ENVIRONMENT=NAMESPACE, both globs; with one, all others are refused; repeatable")
	f.StringSliceVar(&a.allowedAddresses, "allowed-temporal-addresses", nil,
		"addresses that the connections of environments may lead to, as ENVIRONMENT=HOST:PORT, both globs; with one, all others are refused; repeatable")
	f.Var(&a.logLevel, "log-level", "least important messages to log: "+a.logLevel.list())
	f.Var(&a.logFormat, "log-format", "format of the log: "+a.logFormat.list())
	f.BoolVar(&a.noColor, "no-color", false, "no colours (also: NO_COLOR)")
	a.completeFlag(root, "env", a.completeEnvironments)
	a.completeFlag(root, "require-approval", a.completeEnvironments)
	a.completeFlag(root, "require-approval-by-other", a.completeEnvironments)
	a.completeFlag(root, "log-level", a.logLevel.complete)
	a.completeFlag(root, "log-format", a.logFormat.complete)
}

// completeFlag registers how a flag of the command is completed. It fails only for a flag that does not exist.
func (a *app) completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err)
	}
}

// prepare fills in flags from variables and the file, makes the logger, and bounds the memory that the command takes.
func (a *app) prepare(cmd *cobra.Command) error {
	if err := a.applySettings(cmd); err != nil {
		return err
	}
	if err := a.parseApproval(); err != nil {
		return err
	}
	if err := a.parseNamespaces(); err != nil {
		return err
	}
	if f := cmd.Flags().Lookup("cache-dir"); f != nil {
		a.policies.cacheDir = f.Value.String()
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel.value)); err != nil {
		return err
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(a.err, options)
	if a.logFormat.value == "json" {
		handler = slog.NewJSONHandler(a.err, options)
	}
	a.log = slog.New(handler)
	if a.memory != nil {
		boundMemory(a.log, a.memory)
	}
	return nil
}

// style says whether what goes to standard output is coloured: only on a terminal, and unless someone is against it.
func (a *app) style() report.Style {
	if v, _ := a.variable("NO_COLOR"); v != "" || a.noColor {
		return report.Plain
	}
	if v, _ := a.variable("TERM"); v == "dumb" {
		return report.Plain
	}
	f, ok := printable.Under(a.out).(*os.File)
	if !ok {
		return report.Plain
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return report.Plain
	}
	return report.Coloured
}

// say prints a line for a person on standard error. It ignores a failed write: there is no other place to report it.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintln(a.err, printable.Text(fmt.Sprintf(format, args...)))
}

// flagError adds the nearest flag to an unknown one.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := nearest(unknown.GetSpecifiedName(), names); near != "" {
			return fmt.Errorf("%w (did you mean --%s?)", err, near)
		}
	}
	return fmt.Errorf("%w\n  run %q to see its flags", err, cmd.CommandPath()+" --help")
}

// nearest is the name that is most like a misspelt one, "" if none is near enough.
func nearest(name string, names []string) string {
	best, distance := "", len(name)/3+2
	for _, n := range slices.Sorted(slices.Values(names)) {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(n)); d < distance {
			best, distance = n, d
		}
	}
	return best
}

// noArgs refuses arguments, with the nearest command where there are subcommands.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, not %q", cmd.CommandPath(), args[0])
	}
	return nil
}
