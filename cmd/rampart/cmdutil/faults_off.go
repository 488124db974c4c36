//go:build !faults

package cmdutil

import "github.com/spf13/cobra"

func (a *App) Faults() (WriteHooks, error) { return WriteHooks{}, nil }

func AddFaultSites(*cobra.Command) {}
