//go:build linux

package localkube_test

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// processesOf lists every process that has the directory among its arguments,
// whoever started it.
func processesOf(t testing.TB, dir string) map[int]string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		args := strings.ReplaceAll(string(data), "\x00", " ")
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && strings.Contains(args, dir) {
			found[pid] = args[:min(len(args), 120)]
		}
	}
	return found
}

// noProcesses waits until none is left.
func noProcesses(t testing.TB, dir string) {
	t.Helper()
	eventually(t, "nothing of "+dir+" is left", func() error {
		if left := processesOf(t, dir); len(left) > 0 {
			return fmt.Errorf("left are %v", left)
		}
		return nil
	})
}

// listens tells whether some process listens at the address of an API server: it was taken while none of ours did.
func listens(server string) bool {
	connection, err := net.Dial("tcp", strings.TrimPrefix(server, "https://"))
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

func kill(t testing.TB, pid int, signal syscall.Signal) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("no process to send %s to", signal)
	}
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatalf("send %s to %d: %v", signal, pid, err)
	}
}

// bystander is a process that has nothing to do with localkube, and lives until the test ends it.
func bystander(t testing.TB) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("cat")
	if _, err := cmd.StdinPipe(); err != nil { // which nobody writes to or closes
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// lives tells whether a process has not ended. One that has, and that nobody has waited for, has no arguments any more.
func lives(cmd *exec.Cmd) bool {
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
	return err == nil && len(args) > 0
}

// socket of a process, as the kernel tells it.
type socket struct {
	local, remote netip.AddrPort
	listening     bool
}

// socketsOf lists the TCP sockets that a process has open.
func socketsOf(t testing.TB, pid int) []socket {
	t.Helper()
	inodes := map[string]bool{}
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, "socket:[") {
			inodes[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	var sockets []socket
	for _, table := range []string{"tcp", "tcp6"} {
		file, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			return nil // it ended meanwhile
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) < 10 || !inodes[fields[9]] {
				continue
			}
			const listen = "0A"
			sockets = append(sockets, socket{local: kernelAddress(t, fields[1]), remote: kernelAddress(t, fields[2]), listening: fields[3] == listen})
		}
		_ = file.Close()
	}
	return sockets
}

// kernelAddress reads 0100007F:1F90: words of four bytes, each back to front.
func kernelAddress(t testing.TB, text string) netip.AddrPort {
	t.Helper()
	host, port, _ := strings.Cut(text, ":")
	bytes, err := hex.DecodeString(host)
	if err != nil {
		t.Fatalf("address %q: %v", text, err)
	}
	for word := range slices.Chunk(bytes, 4) {
		slices.Reverse(word)
	}
	address, ok := netip.AddrFromSlice(bytes)
	number, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		t.Fatalf("address %q cannot be read", text)
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(number))
}

// onlyLoopback checks that a cluster's processes are to be reached, and reach
// out, on this machine alone.
func onlyLoopback(t *testing.T, dir string) {
	t.Helper()
	var listeners int
	for pid, args := range processesOf(t, dir) {
		for _, s := range socketsOf(t, pid) {
			if s.listening {
				listeners++
				if s.local.Addr() != netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
					t.Errorf("%s listens on %s", args, s.local)
				}
			} else if !s.remote.Addr().IsLoopback() {
				t.Errorf("%s is connected to %s", args, s.remote)
			}
		}
	}
	if listeners == 0 {
		t.Error("nothing listens at all")
	}
}
