//go:build !linux

package operator_test

import "os/exec"

// dieWithParent does nothing here: only Linux ties a process to its parent.
func dieWithParent(*exec.Cmd) {}
