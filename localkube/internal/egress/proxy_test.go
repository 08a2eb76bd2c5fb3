package egress

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const played = "10.96.0.10:443"

func TestTarget(t *testing.T) {
	proxy := &Proxy{Resolve: func(_ context.Context, address netip.AddrPort) (string, bool, error) {
		switch address.String() {
		case played:
			return "127.0.0.1:8443", true, nil
		case "10.96.0.66:443":
			return "", false, errors.New("the API server is away")
		}
		return "", false, nil
	}}
	tests := map[string]struct{ address, local, refused string }{
		"a Service that is played":  {address: played, local: "127.0.0.1:8443"},
		"loopback":                  {address: "127.0.0.1:9443", local: "127.0.0.1:9443"},
		"loopback of IPv6":          {address: "[::1]:9443", local: "[::1]:9443"},
		"another port of a Service": {address: "10.96.0.10:80", refused: "localkube serve"},
		"a Service nobody plays":    {address: "10.96.0.11:443", refused: "no local process plays 10.96.0.11:443"},
		"another machine":           {address: "192.0.2.1:443", refused: "localkube serve"},
		"every interface":           {address: "0.0.0.0:443", refused: "localkube serve"},
		"a name":                    {address: "example.com:443", refused: "only processes on this machine"},
		"no port":                   {address: "10.96.0.10", refused: "only processes on this machine"},
		"nothing":                   {address: "", refused: "only processes on this machine"},
		"unknown for now":           {address: "10.96.0.66:443", refused: "the API server is away"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			local, err := proxy.target(t.Context(), test.address)
			switch {
			case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("leads to %q, %v, want it refused with %q", local, err, test.refused)
			case test.refused == "" && (err != nil || local != test.local):
				t.Errorf("leads to %q, %v, want %q", local, err, test.local)
			}
		})
	}
}

func TestConnectionCarriesBothWays(t *testing.T) {
	tests := map[string]func(t *testing.T, conn *caller){
		"an answer to what was sent": func(t *testing.T, conn *caller) {
			conn.say(t, "hello\n")
			conn.expect(t, "HELLO\n")
			conn.say(t, "again\n")
			conn.expect(t, "AGAIN\n")
		},
		"the last answer after one side has ended": func(t *testing.T, conn *caller) {
			conn.say(t, "bye\n")
			if err := conn.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			conn.expect(t, "BYE\n")
			conn.expect(t, "the end\n")
			if _, err := conn.reader.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("after the end: %v, want EOF", err)
			}
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			local := shouter(t)
			conn, response := connect(t, serveProxy(t, local), played, "")
			if response.StatusCode != http.StatusOK {
				t.Fatalf("answer is %s", response.Status)
			}
			test(t, conn)
		})
	}
	t.Run("what was sent before the answer", func(t *testing.T) {
		conn, _ := connect(t, serveProxy(t, shouter(t)), played, "early\n")
		conn.expect(t, "EARLY\n")
	})
	t.Run("to loopback as it is", func(t *testing.T) {
		conn, _ := connect(t, serveProxy(t, ""), shouter(t), "")
		conn.say(t, "direct\n")
		conn.expect(t, "DIRECT\n")
	})
}

// The API server keeps its connections: they must not outlive what they lead to.
func TestRecheck(t *testing.T) {
	var local atomic.Pointer[string]
	first, second := shouter(t), shouter(t)
	local.Store(&first)
	proxy := &Proxy{Log: slog.New(slog.DiscardHandler), Resolve: func(context.Context, netip.AddrPort) (string, bool, error) {
		to := *local.Load()
		return to, to != "", nil
	}}
	socket := serve(t, proxy)
	steps := []struct {
		name, to string
		cut      bool
	}{
		{name: "nothing changed", to: first},
		{name: "another process plays it", to: second, cut: true},
		{name: "nobody plays it", to: "", cut: true},
	}
	for _, step := range steps {
		local.Store(&first)
		conn, _ := connect(t, socket, played, "")
		direct, _ := connect(t, socket, shouter(t), "")
		conn.say(t, "hello\n")
		conn.expect(t, "HELLO\n")

		local.Store(&step.to)
		proxy.Recheck(t.Context())
		_, _ = io.WriteString(conn, "again\n") // may be cut already
		if _, err := conn.reader.ReadString('\n'); (err != nil) != step.cut {
			t.Errorf("%s: connection says %v, want it cut: %t", step.name, err, step.cut)
		}
		direct.say(t, "still\n")
		direct.expect(t, "STILL\n")
	}
}

func TestRefusals(t *testing.T) {
	gone := refusing(t)
	tests := map[string]struct {
		local, address, method string
		status                 int
		says                   string
	}{
		"nobody plays it":             {address: "192.0.2.1:443", status: http.StatusForbidden, says: "localkube serve"},
		"a name":                      {address: "example.com:443", status: http.StatusForbidden, says: "example.com"},
		"its process is not there":    {local: gone, address: played, status: http.StatusBadGateway, says: "does not answer"},
		"asked for something else":    {method: "GET", address: played, status: http.StatusMethodNotAllowed, says: "CONNECT"},
		"asked to forward a request ": {method: "POST", address: played, status: http.StatusMethodNotAllowed, says: "CONNECT"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, response := request(t, serveProxy(t, test.local), cmp.Or(test.method, http.MethodConnect), test.address, "")
			defer response.Body.Close()
			if response.StatusCode != test.status || !strings.Contains(response.Status, test.says) {
				t.Errorf("answer is %s, want %d with %q", response.Status, test.status, test.says)
			}
		})
	}
}

// serveProxy serves on a socket, where the process behind the played Service is
// local; none when empty.
func serveProxy(t *testing.T, local string) (socket string) {
	t.Helper()
	proxy := &Proxy{
		Log: slog.New(slog.DiscardHandler),
		Resolve: func(_ context.Context, address netip.AddrPort) (string, bool, error) {
			return local, local != "" && address.String() == played, nil
		},
	}
	return serve(t, proxy)
}

func serve(t *testing.T, proxy *Proxy) (socket string) {
	t.Helper()
	t.Chdir(t.TempDir()) // a socket's path may not be long
	listener, err := net.Listen("unix", "egress.sock")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: proxy}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return filepath.Base(listener.Addr().String())
}

// shouter answers each line in capitals, and "the end" when there are no more.
func shouter(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					fmt.Fprintln(conn, strings.ToUpper(lines.Text()))
				}
				fmt.Fprintln(conn, "the end")
			}()
		}
	}()
	return listener.Addr().String()
}

// refusing is an address that refuses connections: its port is taken, and not listened on.
func refusing(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
}

type caller struct {
	*net.UnixConn
	reader *bufio.Reader
}

func connect(t *testing.T, socket, address, early string) (*caller, *http.Response) {
	t.Helper()
	return request(t, socket, http.MethodConnect, address, early)
}

func request(t *testing.T, socket, method, address, early string) (*caller, *http.Response) {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	target := address
	if method != http.MethodConnect {
		target = "/"
	}
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\n\r\n%s", method, target, address, early)
	through := &caller{UnixConn: conn.(*net.UnixConn), reader: bufio.NewReader(conn)}
	response, err := http.ReadResponse(through.reader, &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	return through, response
}

func (c *caller) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c, line); err != nil {
		t.Fatal(err)
	}
}

func (c *caller) expect(t *testing.T, want string) {
	t.Helper()
	line, err := c.reader.ReadString('\n')
	if err != nil || line != want {
		t.Fatalf("heard %q, %v, want %q", line, err, want)
	}
}
