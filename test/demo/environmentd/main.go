// Command environmentd plays every environmentd of a cluster, for those who try rollouts out where nothing real runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fairlead/fairlead/test/harness/environmentd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listen := flag.String("listen", "127.0.0.1:6878", "where they answer")
	after := flag.Duration("catch-up", 5*time.Second, "how long each takes to catch up, from when it is first asked")
	flag.Parse()
	if err := play(ctx, *listen, *after); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func play(ctx context.Context, address string, after time.Duration) error {
	fleet := environmentd.New()
	fleet.Behave(environmentd.Manner{CatchesUpAfter: after})
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("each catches up after %s: --environmentd-url 'http://%s%s'\n", after, listener.Addr(), environmentd.Path)
	server := &http.Server{Handler: fleet, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
