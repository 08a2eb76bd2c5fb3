//go:build !linux

package launch

import "os/exec"

// dieWithParent does nothing here: only Linux ties a process to its parent.
func dieWithParent(*exec.Cmd) {}
