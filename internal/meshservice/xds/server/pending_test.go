package server

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"
)

// contextWithin ends soon, as that of a client does which gives up.
func contextWithin(parent context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(parent, 100*time.Millisecond)
}

func from(address string) net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(address), Port: 1234}
}

func TestPendingSet(t *testing.T) {
	for name, c := range map[string]struct {
		// come are the addresses in order; a "-" before it has the first of the address be identified.
		come     []string
		rejected []string
	}{
		"no more than fit":                {[]string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, nil},
		"each of another address":         {[]string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}, []string{"10.0.0.1 1"}},
		"a flood displaces itself":        {[]string{"10.0.0.1", "10.0.0.9", "10.0.0.9", "10.0.0.9", "10.0.0.9"}, []string{"10.0.0.9 2", "10.0.0.9 3"}},
		"also if somebody comes after":    {[]string{"10.0.0.9", "10.0.0.9", "10.0.0.9", "10.0.0.1", "10.0.0.2"}, []string{"10.0.0.9 1", "10.0.0.9 2"}},
		"who is identified takes none":    {[]string{"10.0.0.1", "10.0.0.2", "-10.0.0.1", "10.0.0.3", "10.0.0.4"}, nil},
		"a network of IPv6 is one":        {[]string{"fd00::1", "10.0.0.1", "fd00::2", "fd00::3"}, []string{"fd00::1 1"}},
		"IPv4 in IPv6 is as good as IPv4": {[]string{"::ffff:10.0.0.9", "10.0.0.1", "10.0.0.9", "10.0.0.2"}, []string{"::ffff:10.0.0.9 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := newPendingSet(3, 1000, 1000)
			var rejected []string
			entries := map[string]*pending{}
			for i, address := range c.come {
				if address[0] == '-' {
					entries[address[1:]].remove()
					entries[address[1:]].remove()
					continue
				}
				entries[address] = set.add(sourceOf(from(address)), func(err error) {
					if causeOf(err) != causePending {
						t.Error(err)
					}
					rejected = append(rejected, address+" "+string(rune('1'+i)))
				})
			}
			if !slices.Equal(rejected, c.rejected) {
				t.Errorf("rejected are %q, want %q", rejected, c.rejected)
			}
		})
	}
}

func TestPendingBytes(t *testing.T) {
	set := newPendingSet(10, 250, 100)
	rejected := map[string]bool{}
	add := func(name string) *pending {
		return set.add(sourceOf(from("10.0.0.1")), func(err error) {
			if causeOf(err) != causeRequestSize {
				t.Error(err)
			}
			rejected[name] = true
		})
	}
	small, large, tooLarge := add("small"), add("large"), add("too large")
	small.received(80)
	large.received(100)
	tooLarge.received(60)
	tooLarge.received(60)
	if !rejected["too large"] || len(rejected) != 1 {
		t.Fatalf("rejected are %v", rejected)
	}
	tooLarge.received(1000)
	last := add("last")
	last.received(71)
	if !rejected["large"] || len(rejected) != 2 {
		t.Fatalf("rejected are %v: want the one that has sent the most", rejected)
	}
	for _, p := range []*pending{small, last, tooLarge, nil} {
		p.remove()
	}
	if set.count != 0 || set.bytes != 0 || len(set.sources) != 0 {
		t.Errorf("%+v is left", set)
	}
}
