//go:build !unix

package git

import "os"

// tryLock does nothing here: give each process a directory of its own.
func tryLock(*os.File) (bool, error) { return true, nil }

// unlock closes the file.
func unlock(f *os.File) error { return f.Close() }
