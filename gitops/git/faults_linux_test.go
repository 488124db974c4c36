package git

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
)

// tmpfs mounts a file system in memory on a directory until the test ends. It gives what changes how many KiB there is
// room for.
func tmpfs(t *testing.T, dir string) func(kib int) {
	t.Helper()
	if os.Geteuid() != 0 {
		testneed.Missing(t, "mounting a small file system needs root")
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		testneed.Missing(t, fmt.Sprintf("mounting a small file system: %v", err))
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return func(kib int) {
		out, err := exec.CommandContext(t.Context(), "mount", "-o", fmt.Sprintf("remount,size=%dk", kib), dir).CombinedOutput()
		require.NoError(t, err, string(out))
	}
}
