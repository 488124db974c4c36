package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/auditlog"
)

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the completion script of a shell: bash, zsh, fish, powershell",
		Long: `Completion prints a script that completes commands, flags, environments, and the names of the worker deployments and build IDs
in the folder -C, and its branches and tags where it is a Git checkout.`,
		Example: `  source <(rampart completion bash)
  rampart completion zsh > "${fpath[1]}/_rampart"
  rampart completion fish > ~/.config/fish/completions/rampart.fish`,
		Args:                  cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs:             shells,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
			return fmt.Errorf("no script for %q", args[0])
		},
	}
}

// Flags of several commands, by what they take. All others take a file, which is what a shell completes by itself.
var (
	folderFlags = []string{"cache-dir", "dir", "gate-inputs", "out", "records", "specs"}
	// freeFlags take a text that a completion cannot know.
	freeFlags = []string{"action", "allowed-namespaces", "allowed-temporal-addresses", "allowed-temporal-namespaces", "author", "connection", "context", "decision-mask", "deployment", "email", "from", "git-proxy", "git-user", "github-api-url", "github-app-id", "metrics-address", "prometheus-address", "query", "reason", "repo", "run",
		"show", "since", "temporal-address", "temporal-namespace", "temporal-tls-server-name", "to", "webhook-address", "webhook-path", "webhook-url"}
)

// completeRest registers the completion of flags that their commands leave open.
func (a *app) completeRest(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, done := cmd.GetFlagCompletionFunc(f.Name); done {
			return
		}
		switch {
		case f.Name == "branch":
			a.completeFlag(cmd, f.Name, a.completeBranches)
		case f.Name == "decision-ref":
			a.completeFlag(cmd, f.Name, a.completeDecisionRefs)
		case f.Name == "allowed-resource-kinds":
			a.completeFlag(cmd, f.Name, cobra.FixedCompletions(v1alpha1.DefaultResourceKinds(), cobra.ShellCompDirectiveNoFileComp))
		case slices.Contains(folderFlags, f.Name):
			a.completeFlag(cmd, f.Name, onlyFolders)
		case slices.Contains(freeFlags, f.Name) || slices.Contains([]string{"days", "duration", "int", "int64", "float64"}, f.Value.Type()):
			a.completeFlag(cmd, f.Name, cobra.NoFileCompletions)
		}
	})
	for _, c := range cmd.Commands() {
		a.completeRest(c)
	}
}

// refs are the refs of the checkout that the folder -C is in.
func (a *app) refs(cmd *cobra.Command) []string {
	if a.applySettings(cmd) != nil {
		return nil
	}
	clone, err := gitops.OpenClone(a.dir)
	if err != nil {
		return nil
	}
	refs, err := clone.Refs()
	if err := clone.Close(); err != nil {
		return nil
	}
	if err != nil {
		return nil
	}
	return refs
}

const (
	headsPrefix   = "refs/heads/"
	tagsPrefix    = "refs/tags/"
	remotesPrefix = "refs/remotes/"
)

// short are names below one of the prefixes, without it, sorted.
func short(refs []string, prefixes ...string) []string {
	var out []string
	for _, ref := range refs {
		for _, prefix := range prefixes {
			if name, ok := strings.CutPrefix(ref, prefix); ok {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// completeRevisions completes branches, those of remotes and tags.
func (a *app) completeRevisions(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return short(a.refs(cmd), headsPrefix, remotesPrefix, tagsPrefix), cobra.ShellCompDirectiveNoFileComp
}

// completeBranches completes branches as the server has them, as far as the checkout knows them.
func (a *app) completeBranches(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return short(a.refs(cmd), headsPrefix, remotesPrefix+"origin/"), cobra.ShellCompDirectiveNoFileComp
}

// completeDecisionRefs completes the names that refs of decisions are below: the usual one, and those that look like
// it.
func (a *app) completeDecisionRefs(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	out := []string{auditlog.DefaultRef}
	for _, ref := range a.refs(cmd) {
		if strings.HasPrefix(ref, "refs/rampart/") {
			out = append(out, path.Dir(ref))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), cobra.ShellCompDirectiveNoFileComp
}
