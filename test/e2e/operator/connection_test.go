package operator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func probe(t testing.TB, address, path string) (int, string) {
	t.Helper()
	response, err := http.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// answers waits until a path of the operator's probes has this status, and a body that contains the text.
func (p *process) answers(t testing.TB, path string, status int, text string) {
	t.Helper()
	address := p.address(t, "health probes")
	wait.Until(t, func(context.Context) error {
		if code, body := probe(t, address, path); code != status || !strings.Contains(body, text) {
			return fmt.Errorf("%s says %d: %s", path, code, body)
		}
		return nil
	})
}

// wire leads from a port of this machine to a server. Until it is plugged in whoever calls is refused, and nobody else
// can take the port; afterwards it can be cut, and mended.
type wire struct {
	address string
	target  string
	socket  int

	mu    sync.Mutex
	cut   bool
	lines []net.Conn
}

func newWire(t testing.TB, c *cluster.Cluster) *wire {
	t.Helper()
	server, err := url.Parse(c.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	// A socket that is bound but does not listen keeps the port and refuses connections.
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(socket)
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	port := bound.(*syscall.SockaddrInet4).Port
	return &wire{address: fmt.Sprintf("127.0.0.1:%d", port), target: server.Host, socket: socket}
}

func (w *wire) plugIn(t testing.TB) {
	t.Helper()
	if err := syscall.Listen(w.socket, 128); err != nil {
		t.Fatal(err)
	}
	again, err := syscall.Dup(w.socket)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(again), w.address)
	listener, err := net.FileListener(file)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		listener.Close()
		w.setCut(true)
	})
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", w.target)
			if err != nil {
				near.Close()
				continue
			}
			go func() { _, _ = io.Copy(far, near); far.Close() }()
			go func() { _, _ = io.Copy(near, far); near.Close() }()
			w.hold(near, far)
		}
	}()
}

func (w *wire) hold(lines ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, lines...)
	w.hangUp()
}

func (w *wire) setCut(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	w.hangUp()
}

func (w *wire) hangUp() {
	if !w.cut {
		return
	}
	for _, line := range w.lines {
		line.Close()
	}
	w.lines = nil
}

func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	c := cluster.Shared(t)
	electsMeshLeader(t, administrator(t, c.Config()))
	wire := newWire(t, c)
	path := elsewhere(t, c, wire.address)

	p := startOperator(t, path, append(otherPassage, harness.LongLease())...)
	line := p.logged(t, "reach the API server failed, will be tried again")
	if text := fmt.Sprint(line["err"]); !strings.Contains(text, "https://"+wire.address) || !strings.Contains(text, "connection refused") {
		t.Errorf("the log does not say which server, or why: %v", line)
	}
	probes := p.address(t, "health probes")
	if code, _ := probe(t, probes, "/healthz"); code != http.StatusOK {
		t.Errorf("/healthz says %d", code)
	}
	if code, _ := probe(t, probes, "/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz says %d", code)
	}
	if _, body := probe(t, probes, "/readyz"); !strings.Contains(body, "waiting for the API server") {
		t.Errorf("/readyz says %q", body)
	}

	t.Log("the server comes")
	wire.plugIn(t)
	p.ready(t)
	p.leading(t)
	p.answers(t, "/readyz", http.StatusOK, "")
	if code := p.stop(t); code != 0 {
		t.Errorf("ended with %d", code)
	}
}

func TestUnreachableServerAndSignal(t *testing.T) {
	t.Parallel()
	path := kubeconfig(t, "https://127.0.0.1:1", nil, "none")
	p := startOperator(t, path, otherPassage...)
	p.logged(t, "reach the API server failed, will be tried again")
	if code := p.stop(t); code != 0 {
		t.Errorf("ended with %d", code)
	}
	if got := fairlead(t, "status", "istio", "default", "--kubeconfig", path); got.code != 1 ||
		!strings.HasPrefix(got.stderr, "error: reach the API server https://127.0.0.1:1: ") {
		t.Errorf("status: %+v", got)
	}
}

// elsewhere is the administrator's kubeconfig with another address of the server.
func elsewhere(t testing.TB, c *cluster.Cluster, address string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range config.Clusters {
		entry.Server = "https://" + address
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOperatorRefusesToStart(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("clusters: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	absent := filepath.Join(t.TempDir(), "absent")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	good := kubeconfig(t, "https://127.0.0.1:1", nil, "none")

	cases := map[string]struct {
		args []string
		code int
		want string
	}{
		"a kubeconfig that does not parse": {[]string{"--kubeconfig", broken}, 1, broken},
		"a kubeconfig that is not there":   {[]string{"--kubeconfig", absent}, 1, absent},
		"no kubeconfig":                    {nil, 1, "no cluster to talk to"},
		"an unknown passage":               {[]string{"--passages", "flight"}, 2, `unknown passage "flight": the known ones are revision`},
		"an unknown flag":                  {[]string{"--charts", "x"}, 2, "unknown flag: --charts"},
		"charts that are not there":        {[]string{"--chart-dir", "x"}, 2, "--chart-dir: stat x: no such file or directory"},
		"plain metrics for everybody":      {[]string{"--metrics-insecure-bind-address", "0.0.0.0:0"}, 2, "is not a loopback address"},
		"a port out of range":              {[]string{"--metrics-bind-address", ":65536"}, 2, "has no port from 0 to 65535"},
		"a port that is not a number":      {[]string{"--health-probe-bind-address", "127.0.0.1:probes"}, 2, "has no port from 0 to 65535"},
		"a port that is taken": {
			[]string{"--kubeconfig", good, "--metrics-bind-address", taken.Addr().String()}, 1,
			"serve metrics: listen tcp " + taken.Addr().String() + ": bind: address already in use",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := fairlead(t, append([]string{"operator"}, c.args...)...)
			lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
			last := lines[len(lines)-1]
			if got.code != c.code || !strings.HasPrefix(last, "error: ") || !strings.Contains(last, c.want) {
				t.Errorf("want exit code %d and %q, got %+v", c.code, c.want, got)
			}
		})
	}
}
