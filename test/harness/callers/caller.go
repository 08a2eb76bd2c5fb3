package callers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/fairlead/fairlead/test/harness/wait"
)

// Tally counts what became of calls.
type Tally struct {
	// Answered is by zone.
	Answered map[string]int
	Failed   int
	// FirstError is of the first call that failed.
	FirstError string
}

// Total is of all calls that have ended.
func (t Tally) Total() int {
	total := t.Failed
	for _, n := range t.Answered {
		total += n
	}
	return total
}

// Since is what has been added to an earlier tally.
func (t Tally) Since(earlier Tally) Tally {
	added := Tally{Answered: map[string]int{}, Failed: t.Failed - earlier.Failed}
	for zone, n := range t.Answered {
		if n -= earlier.Answered[zone]; n > 0 {
			added.Answered[zone] = n
		}
	}
	if added.Failed > 0 {
		added.FirstError = t.FirstError
	}
	return added
}

// String is in one line.
func (t Tally) String() string {
	var parts []string
	for _, zone := range slices.Sorted(maps.Keys(t.Answered)) {
		parts = append(parts, fmt.Sprintf("%s %d", zone, t.Answered[zone]))
	}
	parts = append(parts, fmt.Sprintf("failed %d", t.Failed))
	if t.FirstError != "" {
		parts = append(parts, "first: "+t.FirstError)
	}
	return strings.Join(parts, ", ")
}

// Caller calls on and on, as a client of gRPC that has no proxy.
type Caller struct {
	connection *grpc.ClientConn
	stop       context.CancelFunc
	running    sync.WaitGroup

	mu    sync.Mutex
	tally Tally
}

// Dial connects to a target, such as backend.mesh:80, through the control plane of a bootstrap.
func Dial(target string, bootstrap Bootstrap) (*grpc.ClientConn, error) {
	resolver, err := xds.NewXDSResolverWithConfigForTesting(bootstrap.JSON())
	if err != nil {
		return nil, fmt.Errorf("read the bootstrap of %s: %w", bootstrap.Node, err)
	}
	return grpc.NewClient("xds:///"+target, grpc.WithResolvers(resolver), grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// Zone calls once.
func Zone(ctx context.Context, connection *grpc.ClientConn) (string, error) {
	var zone wrapperspb.StringValue
	err := connection.Invoke(ctx, Method, &emptypb.Empty{}, &zone)
	return zone.GetValue(), err
}

// Start calls a target so many times a second, whatever becomes of the calls, until Stop.
func Start(target string, bootstrap Bootstrap, rate int) (*Caller, error) {
	connection, err := Dial(target, bootstrap)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &Caller{connection: connection, stop: stop, tally: Tally{Answered: map[string]int{}}}
	c.running.Go(func() {
		ticker := time.NewTicker(time.Second / time.Duration(rate))
		defer ticker.Stop()
		for began, made := time.Now(), 0; ; {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				// A busy machine skips ticks, and the calls of those are made up for.
				for due := int(now.Sub(began).Seconds() * float64(rate)); made < due; made++ {
					c.running.Go(c.call)
				}
			}
		}
	})
	return c, nil
}

func (c *Caller) call() {
	ctx, cancel := context.WithTimeout(context.Background(), wait.Deadline())
	defer cancel()
	zone, err := Zone(ctx, c.connection)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.tally.Answered[zone]++
		return
	}
	if c.tally.Failed++; c.tally.Failed == 1 {
		c.tally.FirstError = err.Error()
	}
}

// Tally is what has become of the calls so far.
func (c *Caller) Tally() Tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tally
	t.Answered = maps.Clone(t.Answered)
	return t
}

// Stop begins no further calls, and waits for those that have begun.
func (c *Caller) Stop() Tally {
	c.stop()
	c.running.Wait()
	_ = c.connection.Close()
	return c.Tally()
}
