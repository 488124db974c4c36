//go:build faults

package main

import (
	"os"
	"strings"
	"syscall"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/temporal"
)

// writeHooks end the process with SIGKILL at the write that RAMPART_FAULT says, such as SetCurrent:after or
// push:before.
func writeHooks() cmdutil.WriteHooks {
	at := func(site, moment string) {
		if os.Getenv("RAMPART_FAULT") != site+":"+strings.ToLower(moment) {
			return
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			panic(err)
		}
		select {} // until the signal arrives
	}
	return cmdutil.WriteHooks{
		Push:      func(m gitops.Moment) { at("push", string(m)) },
		Decisions: func(m gitops.Moment) { at("decisions", string(m)) },
		Temporal:  func(s temporal.Site, m temporal.Moment) { at(string(s), string(m)) },
	}
}
