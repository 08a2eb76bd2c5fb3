package scale_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

// process is a running operator.
type process struct {
	cmd *exec.Cmd
	log log
	// address of its metrics.
	address string
}

// startOperator runs the binary as whoever the kubeconfig is of. It takes no lease: what it writes is what it has to say.
func startOperator(b *testing.B, kubeconfig string) *process {
	b.Helper()
	binary, err := cluster.Binary("fairlead")
	if err != nil {
		b.Fatal(err)
	}
	p := &process{cmd: exec.Command(binary, "operator", "--kubeconfig", kubeconfig, "--chart-dir", cluster.Charts(b),
		"--leader-elect=false", "--metrics-insecure-bind-address=127.0.0.1:0")}
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.TempDir()}
	p.cmd.Stderr = &p.log
	dieWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		if b.Failed() {
			b.Logf("end of the operator's log:\n%s", p.log.last(50))
		}
	})
	until(b, time.Minute, func() bool {
		p.address = p.log.address("insecure metrics")
		return p.address != ""
	})
	return p
}

// stop asks the operator to end, and waits until it has.
func (p *process) stop(b *testing.B) {
	b.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		b.Fatalf("the operator ended badly: %v", err)
	}
}

// until waits for something to come true.
func until(b *testing.B, deadline time.Duration, itIs func() bool) {
	b.Helper()
	for end := time.Now().Add(deadline); !itIs(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("not within %s", deadline)
		}
	}
}

// log is a JSON log that is still being written.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// last are so many of its lines.
func (l *log) last(n int) string {
	lines := slices.Collect(strings.Lines(l.String()))
	return strings.Join(lines[max(0, len(lines)-n):], "")
}

// address that one of the operator's servers has said it listens on.
func (l *log) address(server string) string {
	for text := range strings.Lines(l.String()) {
		var line struct{ Msg, Name, Addr string }
		if json.Unmarshal([]byte(text), &line) == nil && line.Msg == "starting server" && line.Name == server {
			return line.Addr
		}
	}
	return ""
}
