//go:build unix

package git

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks a file for this process; false when another one has it.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// unlock gives a file back and closes it. Closing alone would not do: a process that is being started in this moment
// has the file too, until it runs its program.
func unlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}
