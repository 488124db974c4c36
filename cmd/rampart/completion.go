package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

func completionCommand(a *cmdutil.App) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the completion script of a shell: bash, zsh, fish, powershell",
		Long: `Completion prints a script that completes commands, flags, environments, and the names of the worker
deployments and build IDs in the folder -C, and its branches and tags where it is a Git checkout.`,
		Example: `  source <(rampart completion bash)
  rampart completion zsh > "${fpath[1]}/_rampart"
  rampart completion fish > ~/.config/fish/completions/rampart.fish`,
		Args:                  cmdutil.OneOf(1, shells...),
		ValidArgs:             shells,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Out, true)
			case "zsh":
				return root.GenZshCompletion(a.Out)
			case "fish":
				return root.GenFishCompletion(a.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.Out)
			}
			return fmt.Errorf("no script for %q", args[0])
		},
	}
}

// Flags of several commands, by what they take. All others take a file, which is what a shell completes by itself.
var (
	folderFlags = []string{"cache-dir", "dir", "gate-inputs", "out", "records", "specs"}
	// freeFlags take a text that a completion cannot know.
	freeFlags = []string{"action", "allowed-namespaces", "allowed-temporal-addresses",
		"allowed-temporal-namespaces", "at", "author", "connection", "context", "decision-mask", "deployment",
		"email", "forge-url", "from", "git-proxy", "git-user", "github-api-url", "github-app-id", "metrics-address",
		"policy-bundle", "policy-bundle-scope", "prometheus-address", "query", "reason", "repo", "run", "show",
		"since", "temporal-address", "temporal-namespace", "temporal-tls-server-name", "to", "webhook-address",
		"webhook-path", "webhook-url"}
)

// completeRest registers the completion of flags that their commands leave open.
func completeRest(a *cmdutil.App, cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, done := cmd.GetFlagCompletionFunc(f.Name); done {
			return
		}
		switch {
		case f.Name == "branch":
			cmdutil.CompleteFlag(cmd, f.Name, a.CompleteBranches)
		case f.Name == "decision-ref":
			cmdutil.CompleteFlag(cmd, f.Name, a.CompleteDecisionRefs)
		case f.Name == "allowed-resource-kinds":
			cmdutil.CompleteFlag(cmd, f.Name, cobra.FixedCompletions(v1alpha1.DefaultResourceKinds(),
				cobra.ShellCompDirectiveNoFileComp))
		case slices.Contains(folderFlags, f.Name):
			cmdutil.CompleteFlag(cmd, f.Name, cmdutil.CompleteFolders)
		case slices.Contains(freeFlags, f.Name) ||
			slices.Contains([]string{"days", "duration", "int", "int64", "float64"}, f.Value.Type()):
			cmdutil.CompleteFlag(cmd, f.Name, cobra.NoFileCompletions)
		}
	})
	for _, c := range cmd.Commands() {
		completeRest(a, c)
	}
}
