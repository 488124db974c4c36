// Package install has the commands that print what is installed once: `crds`, `schema`, and `argocd` and `flux`, which
// apply what the bot writes.
package install

import (
	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
)

// Commands returns the commands of this group.
func Commands(a *cmdutil.App) []*cobra.Command {
	return []*cobra.Command{crdsCommand(a), schemaCommand(a), argocdCommand(a), fluxCommand(a)}
}
