package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

const (
	// measureArgument has this program run a test binary, and tell what processor time it took.
	measureArgument = "measure-cpu"
	measured        = "processor time: "
)

// measure runs a test binary and prints the processor time of everything that it started, clusters included: what loses
// its parent comes to this process to be waited for.
func measure(args []string) int {
	const setChildSubreaper = 36
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGQUIT, syscall.SIGTERM, os.Interrupt)
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	code := 0
	var exit *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	// Those that were left behind and have ended, as clusters have that the tests stopped.
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
			break
		}
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err == nil {
		spent := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		fmt.Printf("%s%s\n", measured, spent.Round(10*time.Millisecond))
	}
	return code
}
