package cmdutil

import (
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// cloneRefs are the refs of the checkout that the folder -C is in.
func cloneRefs(a *App, cmd *cobra.Command) []string {
	if a.applySettings(cmd) != nil {
		return nil
	}
	clone, err := gitops.OpenClone(a.Dir)
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

// CompleteRevisions completes branches, those of remotes and tags.
func (a *App) CompleteRevisions(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return short(cloneRefs(a, cmd), headsPrefix, remotesPrefix, tagsPrefix), cobra.ShellCompDirectiveNoFileComp
}

// CompleteBranches completes branches as the server has them, as far as the checkout knows them.
func (a *App) CompleteBranches(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return short(cloneRefs(a, cmd), headsPrefix, remotesPrefix+"origin/"), cobra.ShellCompDirectiveNoFileComp
}

// CompleteDecisionRefs completes the names that refs of decisions are below: the usual one, and those that look like
// it.
func (a *App) CompleteDecisionRefs(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	out := []string{auditlog.DefaultRef}
	for _, ref := range cloneRefs(a, cmd) {
		if strings.HasPrefix(ref, "refs/rampart/") {
			out = append(out, path.Dir(ref))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), cobra.ShellCompDirectiveNoFileComp
}

// CompleteNames completes worker deployments of the folder -C.
func (a *App) CompleteNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var out []string
	if world, ok := a.CompletionWorld(cmd); ok {
		for _, env := range world.Environments {
			for _, d := range env.Deployments {
				if name := d.Deployment.String(); !slices.Contains(args, name) {
					out = append(out, name)
				}
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// CompleteName completes the only argument of a command.
func (a *App) CompleteName(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.CompleteNames(cmd, args, typed)
}

func (a *App) completeEnvironments(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	a.Env = ""
	var out []string
	if world, ok := a.CompletionWorld(cmd); ok {
		out = EnvironmentNames(world)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// CompletionWorld reads the folder -C, and reports whether it can be used. It says nothing of what is wrong with it,
// since someone is typing.
func (a *App) CompletionWorld(cmd *cobra.Command) (rollout.World, bool) {
	if a.applySettings(cmd) != nil {
		return rollout.World{}, false
	}
	world, err := index.ReadFolder(a.Dir)
	if err != nil {
		return world, false
	}
	world, err = OnlyEnvironment(world, a.Env)
	return world, err == nil
}

// CompleteFolders has the shell complete folders.
func CompleteFolders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// CompleteFlag registers how a flag of the command is completed. It panics for a flag that does not exist.
func CompleteFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err)
	}
}
