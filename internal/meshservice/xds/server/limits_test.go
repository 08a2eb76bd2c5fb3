package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
	"github.com/fairlead/fairlead/test/harness/wait"
)

const rejectedMetric = "fairlead_mesh_rejected_total"

// silent opens connections that say nothing, and counts those that are still open.
func silent(t *testing.T, address string, n int) *atomic.Int64 {
	t.Helper()
	open := &atomic.Int64{}
	for range n {
		raw, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = raw.Close() })
		open.Add(1)
		go func() {
			for buffer := make([]byte, 1024); ; {
				if _, err := raw.Read(buffer); err != nil {
					open.Add(-1)
					return
				}
			}
		}()
	}
	return open
}

// Connections that nobody is identified on do not add up, and keep nobody out.
func TestSilentConnections(t *testing.T) {
	const limit, all = 20, 200
	before := measured(t, rejectedMetric, string(causePending))
	store := NewStoreWithTiming(brisk())
	store.Set(cart, config(1, "a"))
	// None is closed for its time, which is another cause.
	address := serve(t, Options{Store: store, Limits: Limits{Pending: limit}, FirstRequestTimeout: wait.Deadline()}, nil)
	early := proxyOf(t, address, false)
	eventually(t, "the first has all", func() bool { return early.knows(resource.Route) == "a" })
	open := silent(t, address, all)
	eventually(t, "no more than the limit are open", func() bool { return open.Load() <= limit })
	if got := measured(t, rejectedMetric, string(causePending)) - before; got < all-limit {
		t.Errorf("%v are counted, want %d", got, all-limit)
	}
	late := proxyOf(t, address, true)
	eventually(t, "one that comes late has all", func() bool { return late.knows(resource.Route) == "a" })
	store.Set(cart, config(2, "a", "b"))
	for _, m := range []*mirror{early, late} {
		eventually(t, "both are served", func() bool { return m.knows(resource.Route) == "a b" })
	}
}

// A connection whose proxy is not identified ends, although it follows the protocol. The clock of synctest stands still while a
// goroutine runs, so that the connection is open before its time is over.
func TestUnidentifiedConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		raw, accepting := net.Pipe()
		listener := &life{Listener: nowhere{}, connections: make(chan net.Conn, 1), over: make(chan struct{})}
		listener.connections <- accepting
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- NewServer(Options{Store: NewStore(), Identify: Insecure, Namespaced: true}).Serve(ctx, listener, insecure.NewCredentials())
		}()
		defer func() {
			_ = raw.Close()
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}()
		if !isAccepted(t, raw) {
			t.Error("it was closed before it was open")
		}
	})
}

// nowhere is the address of what listens to nothing but connections in memory.
type nowhere struct{ net.Listener }

func (nowhere) Addr() net.Addr { return &net.TCPAddr{} }

// isAccepted reads until the server closes the connection, and tells whether the server had accepted the client's settings by then.
func isAccepted(t *testing.T, raw net.Conn) (accepted bool) {
	t.Helper()
	_ = raw.SetReadDeadline(time.Now().Add(hour))
	framer := http2.NewFramer(raw, bufio.NewReader(raw))
	// In memory, whoever writes waits for the one that reads.
	answers := make(chan func() error, 100)
	defer close(answers)
	go func() {
		if _, err := io.WriteString(raw, http2.ClientPreface); err != nil {
			return
		}
		for err := framer.WriteSettings(); err == nil; {
			answer, more := <-answers
			if !more {
				return
			}
			err = answer()
		}
	}()
	for {
		frame, err := framer.ReadFrame()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("it stays open")
		}
		if err != nil {
			return accepted
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			accepted = accepted || frame.IsAck()
			if !frame.IsAck() {
				answers <- framer.WriteSettingsAck
			}
		case *http2.PingFrame:
			if data := frame.Data; !frame.IsAck() {
				answers <- func() error { return framer.WritePing(true, data) }
			}
		}
	}
}

// With as many connections as there may be, those that are open go on, and the next one gets in when one ends.
func TestConnectionLimit(t *testing.T) {
	const limit = 5
	before := measured(t, rejectedMetric, string(causeConnections))
	store := NewStoreWithTiming(brisk())
	store.Set(cart, config(1, "a"))
	address := serve(t, Options{Store: store, Limits: Limits{Connections: limit}}, nil)
	var all []*mirror
	first := dial(t, address, nil)
	for i := range limit {
		connection := first
		if i > 0 {
			connection = dial(t, address, nil)
		}
		m := connect(t, connection, cart.String(), false)
		m.follows = true
		m.ask(resource.Cluster)
		m.ask(resource.Listener)
		eventually(t, "it has all", func() bool { return m.knows(resource.Route) == "a" })
		all = append(all, m)
	}
	open := silent(t, address, 10)
	eventually(t, "further ones are closed", func() bool { return open.Load() == 0 })
	if got := measured(t, rejectedMetric, string(causeConnections)) - before; got != 10 {
		t.Errorf("%v are counted", got)
	}
	store.Set(cart, config(2, "a", "b"))
	for _, m := range all {
		eventually(t, "it is served", func() bool { return m.knows(resource.Route) == "a b" })
	}
	_ = first.Close()
	eventually(t, "another gets in", func() bool {
		raw, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		// A server that has accepted it begins with its settings; one that rejects it closes it.
		_ = raw.SetReadDeadline(time.Now().Add(wait.Deadline()))
		_, err = raw.Read(make([]byte, 1))
		return err == nil
	})
}

// Whoever is rejected and tries again at once on the same connection has to make another one, which is limited.
func TestManyRejectedStreams(t *testing.T) {
	store := NewStoreWithTiming(Timing{})
	store.Set(cart, config(1, "a"))
	address := serve(t, Options{Store: store}, nil)
	connection := dial(t, address, nil)
	connection.Connect()
	eventually(t, "the connection", func() bool { return connection.GetState() == connectivity.Ready })
	closed := make(chan struct{})
	go func() {
		connection.WaitForStateChange(t.Context(), connectivity.Ready)
		close(closed)
	}()
	for range maxRejectedStreams {
		m := connect(t, connection, "nonsense", false)
		m.ask(resource.Listener)
		if err := m.end(t); status.Code(err) != codes.InvalidArgument && status.Code(err) != codes.Unavailable {
			t.Fatal(err)
		}
	}
	select {
	case <-closed:
	case <-time.After(wait.Deadline()):
		t.Errorf("after %d rejected streams the connection is open", maxRejectedStreams)
	}
	// A connection of a proxy stays, whatever else is tried on it.
	connection = dial(t, address, nil)
	good := connect(t, connection, cart.String(), false)
	good.ask(resource.Listener)
	eventually(t, "the listener", func() bool { return good.knows(resource.Listener) == "a" })
	for range 2 * maxRejectedStreams {
		m := connect(t, connection, "nonsense", false)
		m.ask(resource.Listener)
		m.end(t)
	}
	store.Set(cart, config(1, "b"))
	eventually(t, "the next listener", func() bool { return good.knows(resource.Listener) == "b" })
}

// Streams of one connection that are not identified are as limited as connections are.
func TestManyPendingStreams(t *testing.T) {
	const limit = 10
	store := NewStoreWithTiming(Timing{ClientWait: wait.Deadline()})
	store.Set(cart, config(1, "a"))
	address := serve(t, Options{Store: store, Limits: Limits{Pending: limit}}, nil)
	connection := dial(t, address, nil)
	var all []*mirror
	for i := range 3 * limit {
		m := connect(t, connection, model.ProxyID{Mesh: "default", Namespace: "shop", Name: fmt.Sprint("nobody-", i)}.String(), i%2 == 0)
		m.ask(resource.Listener)
		all = append(all, m)
	}
	eventually(t, "most are rejected", func() bool {
		ended := 0
		for _, m := range all {
			select {
			case <-m.ended:
				ended++
			default:
			}
		}
		return ended >= 2*limit
	})
	m := proxyOf(t, address, false)
	eventually(t, "a proxy has all", func() bool { return m.knows(resource.Route) == "a" })
}

// A proxy that does not read what it asked for loses its connection, and with it what is kept for it.
func TestSlowReader(t *testing.T) {
	before := measured(t, rejectedMetric, string(causeSlowReader))
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprintf("%s-%d", strings.Repeat("long", 40), i))
	}
	store := NewStoreWithTiming(brisk())
	deaf := model.ProxyID{Mesh: "default", Namespace: "shop", Name: "deaf"}
	store.Set(deaf, config(0, names...))
	store.Set(cart, config(0, "b"))
	address := serve(t, Options{Store: store, Limits: Limits{SendTimeout: time.Second}}, nil)
	other := proxyOf(t, address, false)
	const window = 64 << 10 // which does not grow with what arrives
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	deafOver(t, connection, deaf.String())
	eventually(t, "it is counted", func() bool { return measured(t, rejectedMetric, string(causeSlowReader)) > before })
	eventually(t, "it is no longer connected", func() bool { return !store.Connection(deaf).Connected })
	store.Set(cart, config(1, "a"))
	eventually(t, "the other goes on", func() bool { return store.Connection(cart).Current && other.knows(resource.Route) == "a" })
}

func TestLargeRequest(t *testing.T) {
	eachProtocol(t, func(t *testing.T, delta bool) {
		before := measured(t, rejectedMetric, string(causeRequestSize))
		store := NewStoreWithTiming(brisk())
		store.Set(cart, config(1, "a"))
		m := connect(t, dial(t, serve(t, Options{Store: store, Limits: Limits{RequestBytes: 10_000}}, nil), nil), cart.String(), delta)
		m.ask(resource.Listener)
		eventually(t, "its listener", func() bool { return m.knows(resource.Listener) == "a" })
		m.ask(resource.Route, strings.Repeat("long", 10_000))
		if err := m.end(t); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("the stream ended with %v", err)
		}
		eventually(t, "it is counted", func() bool { return measured(t, rejectedMetric, string(causeRequestSize)) == before+1 })
	})
}

// However many are rejected, the log stays readable, and says how many it leaves out.
func TestRejectionLog(t *testing.T) {
	var lines []string
	log := newRejectionLog(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	now := time.Now()
	log.now = func() time.Time { return now }
	before := measured(t, rejectedMetric, string(causeIdentity))
	for range 1000 {
		log.record(status.Error(codes.Unauthenticated, "no token"), "10.0.0.9:1", "default.cart-0.shop")
	}
	log.record(rejectf(causeConnections, codes.ResourceExhausted, "too many"), "10.0.0.9:1", "")
	now = now.Add(logInterval)
	log.record(status.Error(codes.Unauthenticated, "no token"), "10.0.0.9:1", "default.cart-0.shop")
	if got := measured(t, rejectedMetric, string(causeIdentity)) - before; got != 1001 {
		t.Errorf("%v are counted", got)
	}
	if len(lines) != 3 {
		t.Fatalf("%d lines are logged: %q", len(lines), lines)
	}
	for i, part := range []string{`"cause"="identity"`, `"cause"="connections"`, `"notLogged"=999`} {
		if !strings.Contains(lines[i], part) {
			t.Errorf("line %d is %s, want %s in it", i, lines[i], part)
		}
	}
}

// The connections of a server are limited in a second, in the order in which they come; who leaves takes no turn.
func TestRateGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := newRateGate(50, 1)
		ctx, cancel := contextWithin(t.Context())
		defer cancel()
		given := make(chan error, 100)
		for range cap(given) {
			go func() { given <- gate.wait(ctx, always) }()
		}
		passed := 0
		for range cap(given) {
			if <-given == nil {
				passed++
			}
		}
		if passed < 5 || passed > 6 { // one at once, then one every 20 ms for 100 ms, at the end of which time itself is a race
			t.Errorf("%d have passed", passed)
		}
		if err := gate.wait(t.Context(), func() bool { return false }); err != nil {
			t.Error(err)
		}
		if err := gate.wait(t.Context(), always); err != nil {
			t.Errorf("after those that gave up: %v", err)
		}
	})
}
