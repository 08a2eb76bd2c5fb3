package operator

import (
	"net"
	"net/http"
	"net/netip"
	"sync"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/lru"
)

// Whoever reaches a port of the operator can connect to it. What one address can take of it, and of the API server by it, is limited.

const (
	// maxConnections is how many connections one port has. The API server, kubelets and whoever scrapes have some each.
	maxConnections = 512
	// callsPerSecond, of at most callBurst at once, are those of one address for which a token may be reviewed.
	callsPerSecond, callBurst = 20, 50
	// reviewsPerSecond, of at most reviewBurst at once, are those of all addresses.
	reviewsPerSecond, reviewBurst = 50, 100
	// maxCallers is of how many addresses the calls are counted.
	maxCallers = 1024
)

// callerOf is what an address counts for: in IPv6 its network, of which one host has many addresses.
func callerOf(address string) netip.Prefix {
	full, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := full.Addr().Unmap().WithZone(""), 64
	if ip.Is4() {
		bits = 32
	}
	caller, _ := ip.Prefix(bits)
	return caller
}

// limitCalls refuses the calls of an address that makes too many.
func limitCalls(next http.Handler) http.Handler {
	var mu sync.Mutex
	callers := lru.New(maxCallers)
	limiterOf := func(caller netip.Prefix) flowcontrol.PassiveRateLimiter {
		mu.Lock()
		defer mu.Unlock()
		if known, found := callers.Get(caller); found {
			return known.(flowcontrol.PassiveRateLimiter)
		}
		limiter := flowcontrol.NewTokenBucketPassiveRateLimiter(callsPerSecond, callBurst)
		callers.Add(caller, limiter)
		return limiter
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !limiterOf(callerOf(r.RemoteAddr)).TryAccept() {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many calls: call again later", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// limitConnections bounds the connections of a listener. If there are too many, the oldest of the address that has the most is
// closed: a flood from one address displaces itself.
func limitConnections(listener net.Listener, limit int) net.Listener {
	return &limitedListener{Listener: listener, limit: limit, callers: map[netip.Prefix][]*limitedConn{}}
}

type limitedListener struct {
	net.Listener
	limit int

	mu      sync.Mutex
	callers map[netip.Prefix][]*limitedConn
	count   int
}

type limitedConn struct {
	net.Conn
	listener *limitedListener
	caller   netip.Prefix
}

func (l *limitedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	one := &limitedConn{Conn: conn, listener: l, caller: callerOf(conn.RemoteAddr().String())}
	if displaced := l.add(one); displaced != nil {
		_ = displaced.Close()
	}
	return one, nil
}

// add adds a connection, and returns the one that has to make room.
func (l *limitedListener) add(one *limitedConn) *limitedConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.callers[one.caller] = append(l.callers[one.caller], one)
	if l.count++; l.count <= l.limit {
		return nil
	}
	var most []*limitedConn
	for caller, theirs := range l.callers {
		// Of two with as many, the newcomer's: who is connected stays.
		if len(theirs) > len(most) || len(theirs) == len(most) && caller == one.caller {
			most = theirs
		}
	}
	return most[0]
}

// Close closes the connection, and removes it once.
func (c *limitedConn) Close() error {
	l := c.listener
	l.mu.Lock()
	for i, other := range l.callers[c.caller] {
		if other == c {
			l.callers[c.caller] = append(l.callers[c.caller][:i:i], l.callers[c.caller][i+1:]...)
			l.count--
			break
		}
	}
	if len(l.callers[c.caller]) == 0 {
		delete(l.callers, c.caller)
	}
	l.mu.Unlock()
	return c.Conn.Close()
}
