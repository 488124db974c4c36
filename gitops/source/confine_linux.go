package source

import "golang.org/x/sys/unix"

// confine bounds the memory of this process.
func confine(memory uint64) error {
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: memory, Max: memory})
}
