//go:build !linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

const (
	measureArgument = "measure-cpu"
	measured        = "processor time: "
)

// measure only runs the test binary: how much processor time all took that it started, only Linux can tell.
func measure(args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
