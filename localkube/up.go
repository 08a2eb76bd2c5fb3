package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
	"github.com/fairlead/fairlead/localkube/internal/supervisor"
)

func newUpCommand() *cobra.Command {
	var wish clusterdir.Wish
	var port int
	var until int32
	cmd := &cobra.Command{
		Use:   "up --dir DIR",
		Short: "Start a cluster, or start again what of it has died",
		Example: `  localkube up --dir /tmp/blue
  localkube up --dir /tmp/hub --profile hub
  kubectl --kubeconfig /tmp/blue/kubeconfig get nodes`,
	}
	cmd.Flags().StringVar((*string)(&wish.Profile), "profile", "",
		"cluster, or hub: an API for templates, where nothing runs (default cluster)")
	cmd.Flags().IntVar(&wish.Nodes, "nodes", 0, "how many nodes it has (default 1; none in a hub)")
	cmd.Flags().IntVar(&port, "port", 0, "port of the API server on 127.0.0.1; 0 for any that is free (default: that of the last start)")
	cmd.Flags().Int32Var(&until, "until-exit-of", 0, "pid of a process: the cluster stops when that one ends")
	return withDir(cmd, func(cmd *cobra.Command, dir clusterdir.Dir) error {
		if cmd.Flags().Changed("port") {
			wish.Port = &port
		}
		if err := wish.Validate(); err != nil {
			return usageError{err}
		}
		if until != 0 && !supervisor.Alive(until) {
			return usageError{fmt.Errorf("--until-exit-of %d: there is no such process", until)}
		}
		return up(cmd.Context(), dir, wish, until)
	})
}

func up(ctx context.Context, dir clusterdir.Dir, wish clusterdir.Wish, until int32) error {
	if err := dir.Prepare(); err != nil {
		return err
	}
	steps := newSteps(os.Stdout)
	defer steps.finish()
	release, err := takeTurn(ctx, dir, steps)
	if err != nil {
		return err
	}
	defer release()

	client := supervisor.NewClient(dir)
	records, running, err := client.Status(ctx)
	if err != nil {
		return err
	}
	if err := configure(dir, wish, running); err != nil {
		return err
	}
	if running && allRunning(records) {
		steps.done(fmt.Sprintf("already running: %s", dir.Kubeconfig()))
		return nil
	}
	begun := time.Now()
	steps.doing("starting localkube")
	if !running {
		if err := client.Launch(ctx, until); err != nil {
			return err
		}
	}
	if err := client.Start(ctx, supervisor.Progress{Doing: steps.doing, Done: steps.done}); err != nil {
		// A first start that fails leaves nothing running behind.
		if !running {
			return errors.Join(err, client.Stop(context.WithoutCancel(ctx)))
		}
		return err
	}
	steps.done(fmt.Sprintf("ready in %.1fs: %s", time.Since(begun).Seconds(), dir.Kubeconfig()))
	return nil
}

// takeTurn waits while another `up` is at work on the same directory: what it
// has started is then found running, and what it has settled is not overwritten.
func takeTurn(ctx context.Context, dir clusterdir.Dir, steps *steps) (release func(), err error) {
	lock := flock.New(dir.StartLock())
	held, err := lock.TryLock()
	if err == nil && !held {
		steps.doing("another `localkube up` is starting this cluster: waiting for it")
		_, err = lock.TryLockContext(ctx, 20*time.Millisecond)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir.StartLock(), err)
	}
	return func() { _ = lock.Close() }, nil
}

func configure(dir clusterdir.Dir, wish clusterdir.Wish, running bool) error {
	before, err := dir.LoadSettings()
	if err != nil {
		return err
	}
	settled, err := dir.Settle(before, wish, running)
	if err != nil || running {
		return err
	}
	return dir.SaveSettings(settled)
}

func allRunning(records []clusterdir.Record) bool {
	return !slices.ContainsFunc(records, func(r clusterdir.Record) bool {
		return r.State == clusterdir.Dead || r.State == clusterdir.Stopped
	})
}

func newSuperviseCommand() *cobra.Command {
	var until int32
	cmd := &cobra.Command{Use: "supervise", Hidden: true}
	cmd.Flags().Int32Var(&until, "until", 0, "")
	return withDir(cmd, func(cmd *cobra.Command, dir clusterdir.Dir) error {
		return supervisor.Run(cmd.Context(), dir, until)
	})
}
