package confined

import (
	"os"

	"golang.org/x/sys/unix"
)

// limitMemory bounds the memory of this process, in bytes. Where a container or a machine has none left, it is this
// process that goes.
func limitMemory(most uint64) error {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) //nolint:errcheck // it is the bound that counts
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most})
}
