//go:build linux

package localkube_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"
)

// onTerminal runs a command that must not fail with a terminal for its output,
// and returns all that was shown there. It tells of what has been shown so far.
func onTerminal(t *testing.T, cmd *exec.Cmd, tell func(shown string)) string {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal to be had: %v", err)
	}
	defer screen.Close()
	var locked, number int32
	for request, argument := range map[uintptr]*int32{syscall.TIOCSPTLCK: &locked, syscall.TIOCGPTN: &number} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, screen.Fd(), request, uintptr(unsafe.Pointer(argument))); errno != 0 {
			t.Fatalf("open a terminal: %v", errno)
		}
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = terminal, terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = terminal.Close()
	var shown []byte
	for buffer := make([]byte, 4096); ; {
		n, err := screen.Read(buffer)
		shown = append(shown, buffer[:n]...)
		if err != nil { // the last one there has left
			break
		}
		tell(string(shown))
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, shown)
	}
	return string(shown)
}
