// Package egress is the only way out of a cluster's API server: an HTTP CONNECT
// proxy that knows which Service ports are played by processes on this machine,
// and refuses everything else, so that nothing ever leaves it.
package egress

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Resolve finds the local process behind an address of the cluster.
// ok is false where none is.
type Resolve func(ctx context.Context, address netip.AddrPort) (local string, ok bool, err error)

// Proxy answers CONNECT requests.
type Proxy struct {
	Resolve Resolve
	Log     *slog.Logger

	// tunnels are the connections that stand. The API server keeps them open to
	// use them again, long after what they lead to has been changed.
	tunnels sync.Map
}

// ServeHTTP connects the caller to the local process that plays the address it asked for.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		refuse(w, http.StatusMethodNotAllowed, "only CONNECT is served here")
		return
	}
	local, err := p.target(r.Context(), r.Host)
	if err != nil {
		p.Log.Warn("refused", "address", r.Host, "why", err.Error())
		refuse(w, http.StatusForbidden, err.Error())
		return
	}
	upstream, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(r.Context(), "tcp", local)
	if err != nil {
		p.Log.Warn("local process does not answer", "address", r.Host, "local", local, "why", err.Error())
		refuse(w, http.StatusBadGateway, fmt.Sprintf("the local process behind %s does not answer: %v", r.Host, err))
		return
	}
	defer upstream.Close()

	downstream, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer downstream.Close()
	if _, err := io.WriteString(downstream, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	t := &tunnel{asked: r.Host, local: local, downstream: downstream, upstream: upstream}
	p.tunnels.Store(t, nil)
	defer p.tunnels.Delete(t)
	t.carry(buffered)
}

// refuse says why in the status line: that is all that the API server repeats
// to whoever sent the request.
func refuse(w http.ResponseWriter, code int, why string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, why, code)
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", code, strings.ReplaceAll(why, "\n", " "))
}

// target decides where an address leads: loopback to itself, what a local
// process plays to that process, and nothing else anywhere.
func (p *Proxy) target(ctx context.Context, hostPort string) (string, error) {
	address, err := netip.ParseAddrPort(hostPort)
	if err != nil {
		return "", fmt.Errorf("%s is not an IP address and port: localkube reaches only processes on this machine", hostPort)
	}
	if address.Addr().IsLoopback() {
		return hostPort, nil
	}
	local, ok, err := p.Resolve(ctx, address)
	if err != nil {
		return "", fmt.Errorf("find out what %s is: %w", hostPort, err)
	}
	if !ok {
		return "", fmt.Errorf("no local process plays %s: put one there with `localkube serve`", hostPort)
	}
	return local, nil
}
