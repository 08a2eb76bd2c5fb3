package harness

import (
	"os/exec"
	"syscall"
)

// dieWithParent ends the process when the test binary is killed and can no longer do it.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
