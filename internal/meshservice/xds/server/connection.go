package server

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"
)

// admission decides which connections and streams there may be, before they are identified.
type admission struct {
	limits Limits
	// identifyTimeout is how long a connection may be unidentified.
	identifyTimeout      time.Duration
	connections, streams *pendingSet
	handshakes           *rateGate
	rejections           *rejectionLog
	open                 atomic.Int64
}

func newAdmission(limits Limits, identifyTimeout time.Duration, rejections *rejectionLog) *admission {
	return &admission{
		limits: limits, identifyTimeout: identifyTimeout, rejections: rejections,
		connections: newPendingSet(limits.Pending, maxPendingBytes, limits.RequestBytes+receiveWindow),
		streams:     newPendingSet(limits.Pending, maxPendingBytes, maxPendingBytes),
		// A moment's worth of handshakes may begin at once, as when all proxies reconnect.
		handshakes: newRateGate(limits.Handshakes, max(1, limits.Handshakes/4)),
	}
}

// connection is a counted connection.
type connection struct {
	net.Conn
	admission *admission
	// ctx ends when the connection closes.
	ctx     context.Context
	end     context.CancelFunc
	timeout *time.Timer
	once    sync.Once
	// pending is nil when a stream of the connection is identified.
	pending  atomic.Pointer[pending]
	rejected atomic.Int32
}

// listen counts the connections of a listener.
func (a *admission) listen(listener net.Listener) net.Listener {
	return &countingListener{listener, a}
}

type countingListener struct {
	net.Listener
	admission *admission
}

func (l *countingListener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if one := l.admission.admit(raw); one != nil {
			return one, nil
		}
		_ = raw.Close()
	}
}

// admit returns nil if there are too many connections.
func (a *admission) admit(raw net.Conn) *connection {
	if a.open.Add(1) > int64(a.limits.Connections) {
		a.open.Add(-1)
		a.rejections.record(rejectf(causeConnections, codes.ResourceExhausted, "there are %d connections already", a.limits.Connections), raw.RemoteAddr().String(), "")
		return nil
	}
	c := &connection{Conn: raw, admission: a}
	c.ctx, c.end = context.WithCancel(context.Background())
	c.timeout = time.AfterFunc(a.identifyTimeout, func() {
		c.reject(rejectf(causeTimeout, codes.DeadlineExceeded, "no proxy was identified on the connection within %s", a.identifyTimeout))
	})
	p := a.connections.add(sourceOf(raw.RemoteAddr()), c.reject)
	c.pending.Store(p)
	if c.ctx.Err() != nil { // closed concurrently
		p.remove()
	}
	return c
}

// reject closes an unidentified connection.
func (c *connection) reject(err error) {
	if c.ctx.Err() == nil {
		c.admission.rejections.record(err, c.Conn.RemoteAddr().String(), "")
	}
	_ = c.Close()
}

// identified says that the connection is that of a proxy.
func (c *connection) identified() {
	if c == nil {
		return
	}
	c.timeout.Stop()
	c.pending.Swap(nil).remove()
}

// rejectedStream closes a connection of which many streams are rejected, and none is identified.
func (c *connection) rejectedStream() {
	if c != nil && c.pending.Load() != nil && c.rejected.Add(1) >= maxRejectedStreams {
		_ = c.Close()
	}
}

func (c *connection) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if p := c.pending.Load(); p != nil && n > 0 {
		p.received(n)
	}
	return n, err
}

func (c *connection) Close() error {
	c.once.Do(func() {
		c.end()
		c.timeout.Stop()
		c.pending.Load().remove()
		c.admission.open.Add(-1)
	})
	return c.Conn.Close()
}

// RemoteAddr leads from a stream to its connection.
func (c *connection) RemoteAddr() net.Addr { return peerAddress{c.Conn.RemoteAddr(), c} }

type peerAddress struct {
	net.Addr
	connection *connection
}

// connectionOf returns the connection of a stream, or nil.
func connectionOf(ctx context.Context) *connection {
	from, known := peer.FromContext(ctx)
	if !known {
		return nil
	}
	address, _ := from.Addr.(peerAddress)
	return address.connection
}

func addressOf(ctx context.Context) net.Addr {
	from, known := peer.FromContext(ctx)
	if !known {
		return nil
	}
	return from.Addr
}

// handshakes are credentials that begin a limited number of handshakes in a second: each costs processor time before
// anything is known of the client.
type handshakes struct {
	credentials.TransportCredentials
	admission *admission
}

func (h handshakes) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, counted := raw.(*connection)
	if !counted {
		return h.TransportCredentials.ServerHandshake(raw)
	}
	if err := h.admission.handshakes.wait(c.ctx, always); err != nil {
		return nil, nil, fmt.Errorf("the connection is closed: %w", err)
	}
	conn, info, err := h.TransportCredentials.ServerHandshake(raw)
	if err != nil && c.ctx.Err() == nil {
		h.admission.rejections.record(rejectf(causeHandshake, codes.Unauthenticated, "%v", err), c.Conn.RemoteAddr().String(), "")
	}
	return conn, info, err
}

// onStream is called before a stream begins: a method that is not served counts as a rejected stream.
func (a *admission) onStream(ctx context.Context, info *tap.Info) (context.Context, error) {
	if !servedMethods[info.FullMethodName] {
		connectionOf(ctx).rejectedStream()
	}
	return ctx, nil
}

// isCompressed says whether the requests of a stream are compressed. Their size would say nothing of what they take.
func isCompressed(ctx context.Context) bool {
	stream, known := grpc.ServerTransportStreamFromContext(ctx).(interface{ RecvCompress() string })
	if !known {
		return false
	}
	compression := stream.RecvCompress()
	return compression != "" && compression != encoding.Identity
}

// decoded counts the names in a request of an unidentified connection, besides the bytes that were received.
func (c *connection) decoded(names int) {
	if c == nil {
		return
	}
	if p := c.pending.Load(); p != nil && names > 0 {
		p.received(names * decodedNameCost)
	}
}
