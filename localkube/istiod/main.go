// Command localkube-istiod is Istio's own istiod, as a process that localkube
// runs behind the Service of a revision.
package main

import (
	"io"
	"os"
	"syscall"
	"time"

	"istio.io/istio/pilot/cmd/pilot-discovery/app"
)

func main() {
	go dieWithParent()
	if err := app.NewRootCommand().Execute(); err != nil {
		os.Exit(1)
	}
}

// dieWithParent ends this process when localkube is gone: it holds the other
// end of stdin, and never writes to it.
func dieWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	time.AfterFunc(3*time.Second, func() { os.Exit(1) })
}
