package confined

import "golang.org/x/sys/unix"

// limitMemory bounds the memory of this process, in bytes.
func limitMemory(most uint64) error {
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most})
}
