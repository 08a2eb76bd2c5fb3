package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
)

// pollInterval is how often the end state and the invariant are looked at.
const pollInterval = 25 * time.Millisecond

// exitError is a process that gave up.
type exitError struct{ error }

func (e exitError) Error() string { return "the process ended: " + e.error.Error() }
func (e exitError) Unwrap() error { return e.error }

// process is one life of the process under test.
type process struct {
	in   *Injector
	stop context.CancelFunc
	over chan struct{}
	err  error // valid once over is closed
}

func start(w World, cfg *rest.Config, in *Injector) *process {
	ctx, stop := context.WithCancel(context.Background())
	p := &process{in: in, stop: stop, over: make(chan struct{})}
	go func() {
		defer close(p.over)
		p.err = w.Run(ctx, in.Config(cfg))
	}()
	return p
}

// end stops the process and waits until it is gone. What it may have left
// running is cut off, so that only the next process can change anything.
func (p *process) end(ctx context.Context) error {
	p.stop()
	select {
	case <-p.over:
	case <-ctx.Done():
		return errors.New("the process did not stop when its context ended")
	}
	p.in.Cut()
	if err := p.in.Drain(ctx); err != nil {
		return fmt.Errorf("wait for the last write: %w", err)
	}
	return nil
}

// silentLooks is how often in a row the process must have been found silent.
const silentLooks = 10

// settle follows the process until it has reached the end state and fallen
// silent. It returns ErrCut when the process was cut off before that, and an
// exitError when the process gave up.
func (p *process) settle(w World, timeout, quiet time.Duration) error {
	tick, late := time.NewTicker(pollInterval), time.NewTimer(timeout)
	defer tick.Stop()
	defer late.Stop()
	// The calls may outlast the timeout a little: their own "deadline exceeded"
	// would hide what is missing.
	ctx, cancel := context.WithTimeout(context.Background(), timeout+10*time.Second)
	defer cancel()
	looks := 0
	for {
		if err := w.invariant(ctx); err != nil {
			return err
		}
		missing := w.Settled(ctx)
		looks++
		if p.in.quietFor(time.Now()) < pollInterval {
			looks = 0
		}
		// On a busy machine the process is as slow as we are: time alone says little.
		silent := p.in.quietFor(time.Now()) >= quiet && looks >= silentLooks
		if closed(p.in.Dead()) {
			return ErrCut
		}
		if closed(p.over) {
			if p.err != nil {
				return exitError{p.err}
			}
			silent = true
		}
		if missing == nil && silent {
			return nil
		}
		select {
		case <-tick.C:
		case <-late.C:
			if missing != nil {
				return fmt.Errorf("the end state was not reached in time: %w", missing)
			}
			return errors.New("the end state was reached, but the process does not come to rest")
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
