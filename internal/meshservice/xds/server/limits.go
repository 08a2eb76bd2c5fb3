package server

import (
	"cmp"
	"context"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// Limits bound what clients can take of a server.
type Limits struct {
	// Connections is how many connections are open at once, and Streams how many streams one connection or one proxy has.
	Connections, Streams int
	// Pending is how many connections, and how many streams, may be unidentified at once.
	Pending int
	// Handshakes is how many connections begin in a second, and TokenReviews how many tokens are reviewed in a second.
	Handshakes, TokenReviews int
	// RequestBytes is the size of a request, and SendTimeout how long a proxy may take to read a response.
	RequestBytes int
	SendTimeout  time.Duration
}

// DefaultLimits suit some thousand proxies.
func DefaultLimits() Limits {
	return Limits{
		Connections: 10_000, Streams: 256, Pending: 1000, Handshakes: 500, TokenReviews: 200,
		RequestBytes: 4 << 20, SendTimeout: time.Minute,
	}
}

// orDefaults replaces zeros.
func (l Limits) orDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		Connections: cmp.Or(l.Connections, d.Connections), Streams: cmp.Or(l.Streams, d.Streams), Pending: cmp.Or(l.Pending, d.Pending),
		Handshakes: cmp.Or(l.Handshakes, d.Handshakes), TokenReviews: cmp.Or(l.TokenReviews, d.TokenReviews),
		RequestBytes: cmp.Or(l.RequestBytes, d.RequestBytes), SendTimeout: cmp.Or(l.SendTimeout, d.SendTimeout),
	}
}

// subscriptionBytes bounds the names that all streams of one proxy subscribe to, and those in one request.
func (l Limits) subscriptionBytes() int { return 2 * l.RequestBytes }

const (
	// maxPendingBytes is what all unidentified connections together may have sent.
	maxPendingBytes = 64 << 20
	// maxRejectedStreams is how many streams of an unidentified connection are rejected before it is closed: a client that
	// opens the next one at once then has to make another connection.
	maxRejectedStreams = 10
	// maxHeaderBytes bounds the headers of a stream, a token among them.
	maxHeaderBytes = 64 << 10
	// maxOtherTypes is how many types that are not served a stream may ask for: go-control-plane remembers each.
	maxOtherTypes = 16
	// receiveWindow bounds the bytes of requests that are not read yet, by stream and by connection.
	receiveWindow = 64 << 10
	// readBuffer and writeBuffer are those of a connection: requests are small, and a response is written from memory that
	// all streams share. A connection has a write buffer only while it writes.
	readBuffer, writeBuffer = 4 << 10, 16 << 10
)

// rateGate lets a number of callers through in a second, in the order in which they came. Who gives up takes no place.
type rateGate struct {
	turn    chan struct{}
	limiter flowcontrol.RateLimiter
}

func newRateGate(perSecond, burst int) *rateGate {
	return &rateGate{turn: make(chan struct{}, 1), limiter: flowcontrol.NewTokenBucketRateLimiter(float32(perSecond), burst)}
}

// wait waits for its turn, and then for the rate unless that is no longer needed.
func (g *rateGate) wait(ctx context.Context, needed func() bool) error {
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
		if !needed() {
			return nil
		}
		return g.limiter.Wait(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func always() bool { return true }
