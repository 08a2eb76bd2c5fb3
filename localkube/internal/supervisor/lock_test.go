package supervisor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestOneSupervisorHoldsADirectory(t *testing.T) {
	dir := newDir(t)
	client := NewClient(dir)
	if client.Running() {
		t.Error("runs before anyone holds it")
	}
	release, err := hold(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if !client.Running() {
		t.Error("does not run though it is held")
	}
	briefly, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := hold(briefly, dir); !errors.Is(err, ErrAlreadyRunning) {
		t.Errorf("held twice: %v", err)
	}
	release()
	if client.Running() {
		t.Error("runs after it was released")
	}
}

// Those who look must neither see each other nor keep a supervisor from starting.
func TestManyLookAtOnce(t *testing.T) {
	dir := newDir(t)
	var seen atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				if NewClient(dir).Running() {
					seen.Add(1)
				}
			}
		})
	}
	all.Wait()
	if seen.Load() > 0 {
		t.Errorf("seen running %d times, though none is", seen.Load())
	}

	stop := make(chan struct{})
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
					NewClient(dir).Running()
				}
			}
		})
	}
	release, err := hold(t.Context(), dir)
	close(stop)
	all.Wait()
	if err != nil {
		t.Fatalf("kept from starting by those who look: %v", err)
	}
	release()
}
