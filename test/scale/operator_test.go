package scale_test

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// process is a running operator, whose log is in JSON.
type process struct {
	*harness.Operator
	// address of its metrics.
	address string
}

// startOperator runs the binary with a kubeconfig. The operator takes no lease, so that all its writes are about objects.
func startOperator(b *testing.B, kubeconfig string) *process {
	b.Helper()
	environment := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.TempDir()}
	operator, err := harness.StartFairlead(environment, "operator", "--kubeconfig", kubeconfig, "--chart-dir", cluster.Charts(b),
		"--leader-elect=false", "--metrics-insecure-bind-address=127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	p := &process{Operator: operator}
	p.KeepLogOnFailure(b)
	b.Cleanup(p.Kill)
	until(b, time.Minute, func() bool {
		p.address = p.addressOf("insecure metrics")
		return p.address != ""
	})
	return p
}

// addressOf is the address on which one of the operator's servers listens, by its log.
func (p *process) addressOf(server string) string {
	for text := range strings.Lines(p.Log.Since(0)) {
		var line struct{ Msg, Name, Addr string }
		if json.Unmarshal([]byte(text), &line) == nil && line.Msg == "starting server" && line.Name == server {
			return line.Addr
		}
	}
	return ""
}

// stop asks the operator to end, and waits until it has.
func (p *process) stop(b *testing.B) {
	b.Helper()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	<-p.Ended()
	if code := p.ExitCode(); code != 0 {
		b.Fatalf("the operator ended with %d", code)
	}
}

// until polls a condition, at intervals that do not show in what is measured. The deadline is longer on a slow machine.
func until(b *testing.B, deadline time.Duration, condition func() bool) {
	b.Helper()
	deadline = max(deadline, wait.Deadline())
	for end := time.Now().Add(deadline); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("the condition was not met within %s", deadline)
		}
	}
}
