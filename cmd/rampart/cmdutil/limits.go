package cmdutil

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// versionLimit is how many versions a worker deployment may have; 0: the default.
type versionLimit int

// String is the limit in force.
func (n *versionLimit) String() string {
	return strconv.Itoa(cmp.Or(int(*n), rollout.DefaultLimits().MaxVersions))
}

// Set reads a limit of 2 or more: with one, no version could follow another.
func (n *versionLimit) Set(text string) error {
	i, err := strconv.Atoi(text)
	if err != nil || i < 2 {
		return fmt.Errorf("got %q, want a whole number of 2 or more", text)
	}
	*n = versionLimit(i)
	return nil
}

// Type is what help calls it.
func (n *versionLimit) Type() string { return "int" }

// AddLimits adds the limits that a planner keeps to.
func (f *TemporalFlags) AddLimits(cmd *cobra.Command) {
	cmd.Flags().Var(&f.maxVersions, "max-versions",
		"versions of one worker deployment, known to Git or Temporal, from which on no new one is created")
}

func (f TemporalFlags) limits() rollout.Limits {
	out := rollout.DefaultLimits()
	out.MaxVersions = cmp.Or(int(f.maxVersions), out.MaxVersions)
	return out
}
