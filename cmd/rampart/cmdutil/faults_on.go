//go:build faults

package cmdutil

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/temporal"
)

// variableFault says where the process kills itself: site:moment[:n], such as SetCurrent:after or push:before:2.
const variableFault = "RAMPART_FAULT"

// The sites of pushes to the repository, and of those of decisions; the others are temporal.Sites.
const (
	sitePush      = "push"
	siteDecisions = "decisions"
)

// fault is one place to die at.
type fault struct {
	site, moment string

	mu   sync.Mutex
	left int
}

// Faults gives hooks that end the process, with SIGKILL, at the n-th occurrence of the site's moment.
func (a *App) Faults() (WriteHooks, error) {
	v, ok := a.LookupEnv(variableFault)
	if !ok || v == "" {
		return WriteHooks{}, nil
	}
	f, err := parseFault(v)
	if err != nil {
		return WriteHooks{}, fmt.Errorf("%s: %w", variableFault, err)
	}
	return WriteHooks{
		Push:      func(m gitops.Moment) { f.at(sitePush, string(m)) },
		Decisions: func(m gitops.Moment) { f.at(siteDecisions, string(m)) },
		Temporal:  func(s temporal.Site, m temporal.Moment) { f.at(string(s), string(m)) },
	}, nil
}

func parseFault(v string) (*fault, error) {
	parts := strings.Split(v, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return nil, fmt.Errorf("%q is not site:moment[:n]", v)
	}
	f := &fault{site: parts[0], moment: strings.ToLower(parts[1]), left: 1}
	if !slices.Contains(faultSites(), f.site) {
		return nil, fmt.Errorf("there is no site %q; there is: %s", f.site, strings.Join(faultSites(), ", "))
	}
	if f.moment != "before" && f.moment != "after" {
		return nil, fmt.Errorf("the moment is before or after, not %q", f.moment)
	}
	if len(parts) == 3 {
		n, err := strconv.Atoi(parts[2])
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q: want a number from 1", parts[2])
		}
		f.left = n
	}
	return f, nil
}

func faultSites() []string {
	sites := []string{sitePush, siteDecisions}
	for _, s := range temporal.Sites() {
		sites = append(sites, string(s))
	}
	return sites
}

func (f *fault) at(site, moment string) {
	if site != f.site || strings.ToLower(moment) != f.moment {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left--; f.left > 0 {
		return
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
	select {} // until the signal arrives
}

// AddFaultSites adds the hidden command that prints the sites.
func AddFaultSites(root *cobra.Command) {
	root.AddCommand(&cobra.Command{Use: "fault-sites", Short: "Print the sites of " + variableFault, Hidden: true,
		Args: NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range faultSites() {
				fmt.Fprintln(cmd.OutOrStdout(), s)
			}
			return nil
		}})
}
