package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
	"github.com/fairlead/fairlead/localkube/internal/supervisor"
)

func newIstiodCommand() *cobra.Command {
	var want clusterdir.Istiod
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "istiod --dir DIR --revision REV",
		Short: "Run a real istiod behind the Service of a revision",
		Long: `Run a real istiod behind the Service of a revision, so that pods in its
namespaces get their sidecar. It starts by itself once the revision's chart is
installed, and is stopped by down and started again by up.

It is istiod 1.31, which works with the charts of Istio 1.24 to 1.31.`,
	}
	cmd.Flags().StringVar(&want.Revision, "revision", "", "name of the revision; that of the one without a name is default")
	cmd.Flags().StringVar(&want.Namespace, "namespace", "istio-system", "namespace that the control plane is installed in")
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait until pods get their sidecar")
	return withDir(cmd, func(cmd *cobra.Command, dir clusterdir.Dir) error {
		if want.Revision == "" {
			return usageError{errors.New("--revision is required: the revision whose istiod it is")}
		}
		if err := want.Validate(); err != nil {
			return usageError{err}
		}
		if err := istiodBuilt(); err != nil {
			return err
		}
		client := supervisor.NewClient(dir)
		state, err := client.Istiod(cmd.Context(), want)
		if err != nil {
			return err
		}
		if wait > 0 {
			if state, err = waitForInjection(cmd.Context(), client, want.Revision, state, wait); err != nil {
				return err
			}
		}
		cmd.Printf("istiod of revision %s: %s\n", want.Revision, describe(state.Record))
		return nil
	})
}

func istiodBuilt() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	path := filepath.Join(filepath.Dir(self), supervisor.IstiodBinary)
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%s is not there: `make localkube` builds it", path)
	}
	return nil
}

// waitForInjection follows the state from the last that is known.
func waitForInjection(ctx context.Context, client *supervisor.Client, revision string, last supervisor.IstiodState, wait time.Duration) (supervisor.IstiodState, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		state, err := client.IstiodState(ctx, revision)
		switch {
		case err != nil && ctx.Err() == nil:
			return state, err
		case err == nil && state.NotYet == "":
			return state, nil
		case err == nil && state.Record.State == clusterdir.Dead:
			return state, fmt.Errorf("istiod of revision %s is %s; its log is %s",
				revision, describe(state.Record), state.Record.Log)
		case err == nil:
			last = state
		}
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("istiod of revision %s injects nothing after %s: %s; its log is %s", revision, wait, last.NotYet, last.Record.Log)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
