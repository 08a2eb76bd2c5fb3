package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/test/harness/wait"
)

// Scenario is a story that can be told again and again, each time in a fresh
// world, and that must always end in the same way.
type Scenario struct {
	// Config connects the process under test; it is handed to World.Run with
	// the faults built in.
	Config *rest.Config
	// Setup makes a fresh world: a namespace or a name prefix of its own, and
	// the objects the story begins with.
	Setup func(testing.TB) World
	// Counted is what counts as a write; nil stands for Write.
	Counted Match
	// Pick, if set, chooses which writes of the undisturbed run are disturbed,
	// for stories too long to be told for each of them. The k-th is writes[k-1].
	Pick func(k int, writes Log) bool
	// RestartWrites permits a process that is started again, with nothing left
	// to do, to write. Unless set, that is a failure.
	RestartWrites bool
	// Timeout bounds every wait: for the end state, and for the process to stop
	// when it is told to. The default is wait.Deadline.
	Timeout time.Duration
	// Quiet is how long the process must have been silent for its end state to
	// be taken as final. The default is 300 ms.
	Quiet time.Duration
}

// World is one telling of a Scenario.
type World struct {
	// Run is the process under test. It runs until its context is done, or
	// returns nil earlier when its work is done for good.
	Run func(context.Context, *rest.Config) error
	// Settled returns nil when the end state is reached, and otherwise what is
	// still missing.
	Settled func(context.Context) error
	// Snapshot describes the end state without anything that differs from world
	// to world; see Dump.
	Snapshot func(context.Context) (map[string]string, error)
	// Invariant, if set, must hold at all times. It is asked every few
	// milliseconds, so what must not be missed between two looks has to leave a
	// trace that it can see.
	Invariant func(context.Context) error
	// Teardown, if set, removes the world.
	Teardown func()
}

func (s Scenario) withDefaults() Scenario {
	if s.Counted == nil {
		s.Counted = Write
	}
	if s.Timeout == 0 {
		s.Timeout = wait.Deadline()
	}
	if s.Quiet == 0 {
		s.Quiet = 300 * time.Millisecond
	}
	return s
}

func (w World) teardown() {
	if w.Teardown != nil {
		w.Teardown()
	}
}

func (w World) invariant(ctx context.Context) error {
	if w.Invariant == nil {
		return nil
	}
	if err := w.Invariant(ctx); err != nil {
		return fmt.Errorf("invariant broken: %w", err)
	}
	return nil
}
