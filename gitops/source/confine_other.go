//go:build !linux

package source

// confine does nothing: on other systems than Linux builds are bounded in time and in what they give.
func confine(uint64) error { return nil }
