package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rampart-gitops/rampart/cmd/rampart/bot"
	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/cmd/rampart/inspect"
	"github.com/rampart-gitops/rampart/cmd/rampart/install"
	"github.com/rampart-gitops/rampart/cmd/rampart/operate"
	"github.com/rampart-gitops/rampart/cmd/rampart/policies"
	"github.com/rampart-gitops/rampart/cmd/rampart/specs"
	"github.com/rampart-gitops/rampart/cmd/rampart/takeover"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/printable"
)

// run runs the program and gives its exit code.
func run(args []string) int {
	ctx, cancel := cmdutil.NotifyContext(context.Background())
	defer cancel()
	a := &cmdutil.App{In: cmdutil.StoppableReader(ctx, os.Stdin), Out: printable.NewWriter(os.Stdout),
		Err: printable.NewWriter(os.Stderr), LookupEnv: os.LookupEnv, Memory: memlimit.FromCgroup,
		Now: func() time.Time { return time.Now().UTC() }, Log: slog.New(slog.DiscardHandler),
		Hooks: writeHooks()}
	root := newRoot(a)
	if slices.Equal(args, []string{"--version"}) { // as other programs have it
		args = []string{"version"}
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = misspelled(cmd)
	}
	a.PrintError(ctx, err)
	return cmdutil.ExitCode(ctx, err)
}

func newRoot(a *cmdutil.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "rampart",
		Short: "Roll out Temporal workers through Git",
		Long: `Rampart rolls out Temporal workers through Git. It reads TemporalWorkerDeployment specs from a
repository, asks Temporal which versions are current, ramping, draining and drained, asks policies what may happen
next, and commits versioned Deployments, the desired routing and the status back to Git.

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
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.Prepare(cmd) },
		Args:              cobra.ArbitraryArgs,
		RunE:              cmdutil.Parent,
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(flagError)
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if misspelled(cmd) == nil { // else run says so
			help(cmd, args)
		}
	})
	root.SetHelpCommand(&cobra.Command{Use: "help [COMMAND]", Short: "Help about a command", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return cmdutil.UnknownCommand(found, rest[0])
			}
			return found.Help()
		}})
	a.AddGlobalFlags(root)
	for _, group := range [][]*cobra.Command{bot.Commands(a), inspect.Commands(a), operate.Commands(a),
		specs.Commands(a), policies.Commands(a), install.Commands(a), takeover.Commands(a)} {
		root.AddCommand(group...)
	}
	root.AddCommand(versionCommand(a), completionCommand(a))
	root.AddCommand(foreignCommands()...)
	completeRest(a, root)
	return root
}

// misspelled is the error that a command which only has others below it was given one that it does not have.
func misspelled(cmd *cobra.Command) error {
	if !cmd.HasSubCommands() || cmd.Flags().NArg() == 0 {
		return nil
	}
	return cmdutil.UnknownCommand(cmd, cmd.Flags().Arg(0))
}

// flagError adds the nearest flag to an unknown one. Flags of a misspelled command are not known either.
func flagError(cmd *cobra.Command, err error) error {
	if err := misspelled(cmd); err != nil {
		return err
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := v1alpha1.Closest(unknown.GetSpecifiedName(), names); near != "" {
			return fmt.Errorf("%w (did you mean --%s?)", err, near)
		}
	}
	return fmt.Errorf("%w\n  run %q to see its flags", err, cmd.CommandPath()+" --help")
}
