package egress

import (
	"context"
	"io"
	"net"
	"sync"
)

// tunnels are the connections that stand. The API server keeps them open to use
// them again, long after what they lead to has been changed.
type tunnels struct {
	mu   sync.Mutex
	open map[*tunnel]struct{}
}

type tunnel struct {
	asked, local         string
	downstream, upstream net.Conn
}

func (all *tunnels) add(t *tunnel) (remove func()) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.open == nil {
		all.open = map[*tunnel]struct{}{}
	}
	all.open[t] = struct{}{}
	return func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		delete(all.open, t)
	}
}

func (all *tunnels) list() []*tunnel {
	all.mu.Lock()
	defer all.mu.Unlock()
	var list []*tunnel
	for t := range all.open {
		list = append(list, t)
	}
	return list
}

// Recheck cuts the connections that would lead elsewhere, or nowhere, if they
// were made now.
func (p *Proxy) Recheck(ctx context.Context) {
	for _, t := range p.tunnels.list() {
		if local, err := p.target(ctx, t.asked); err != nil || local != t.local {
			t.close()
		}
	}
}

func (t *tunnel) close() {
	_ = t.downstream.Close()
	_ = t.upstream.Close()
}

// carry copies both ways until both sides have said all they had to say.
func (t *tunnel) carry(fromDownstream io.Reader) {
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(t.upstream, fromDownstream)
		closeWrite(t.upstream)
	})
	both.Go(func() {
		_, _ = io.Copy(t.downstream, t.upstream)
		closeWrite(t.downstream)
	})
	both.Wait()
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}
