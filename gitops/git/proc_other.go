//go:build !unix

package git

import "os/exec"

func isolate(*exec.Cmd) {}

// killGroup ends a started process.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
