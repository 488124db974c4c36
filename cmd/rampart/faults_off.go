//go:build !faults

package main

import "github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"

// writeHooks are nil: only tests build the program with the tag faults.
func writeHooks() cmdutil.WriteHooks { return cmdutil.WriteHooks{} }
