package egress

import (
	"context"
	"io"
	"net"
	"sync"
)

type tunnel struct {
	asked, local         string
	downstream, upstream net.Conn
}

// Recheck cuts the connections that would lead elsewhere, or nowhere, if they
// were made now.
func (p *Proxy) Recheck(ctx context.Context) {
	p.tunnels.Range(func(key, _ any) bool {
		t := key.(*tunnel)
		if local, err := p.target(ctx, t.asked); err != nil || local != t.local {
			_ = t.downstream.Close()
			_ = t.upstream.Close()
		}
		return true
	})
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
