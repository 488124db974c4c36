//go:build unix

package git

import (
	"os/exec"
	"syscall"
)

// isolate puts a process and its children into a group of their own. So all of them can be ended together, and an
// interrupt at the terminal does not cut a push in two.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends a started process and its children.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
