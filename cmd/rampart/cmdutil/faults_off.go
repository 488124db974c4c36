//go:build !faults

package cmdutil

import "github.com/spf13/cobra"

// Faults gives no hooks: this program is built without the tag faults.
func (a *App) Faults() (WriteHooks, error) { return WriteHooks{}, nil }

// AddFaultSites adds nothing: this program is built without the tag faults.
func AddFaultSites(*cobra.Command) {}
