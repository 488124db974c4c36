package main

import (
	"io"
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
)

// Whatever opens a repository takes as much as the container has, not the bot alone.
func TestEachCommandBoundsItsMemory(t *testing.T) {
	was := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(was)
	t.Setenv("GOMEMLIMIT", "")
	require.NoError(t, os.Unsetenv("GOMEMLIMIT"))
	a := &cmdutil.App{Out: io.Discard, Err: io.Discard, LookupEnv: func(string) (string, bool) { return "", false }, Memory: memlimit.Limit(500 << 20)}
	root := newRoot(a)
	root.SetArgs([]string{"version"})
	root.SetOut(io.Discard)
	require.NoError(t, root.Execute())
	require.Equal(t, int64(300<<20), debug.SetMemoryLimit(-1))
}
