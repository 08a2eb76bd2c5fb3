package conversion_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/test/harness"
)

// inProcessOperator is an operator that runs within the test.
type inProcessOperator struct {
	log   *harness.Log
	stop  context.CancelFunc
	ended chan struct{}
	err   error
}

func (w *world) begin() *inProcessOperator {
	ctx, stop := context.WithCancel(context.Background())
	l := &inProcessOperator{log: &harness.Log{}, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		l.err = w.run(ctx, l.log)
	}()
	return l
}

// end gives way to another operator.
func (l *inProcessOperator) end() {
	l.stop()
	<-l.ended
}

// alive is an error when the operator has ended.
func (l *inProcessOperator) alive() error {
	select {
	case <-l.ended:
		return fmt.Errorf("the operator ended: %w", l.err)
	default:
		return nil
	}
}

func (l *inProcessOperator) says(text string) func(context.Context) error {
	return func(context.Context) error {
		if !strings.Contains(l.log.Since(0), text) {
			return fmt.Errorf("its log does not say %s", text)
		}
		return l.alive()
	}
}

func (l *inProcessOperator) keepLogOnFailure(t testing.TB) {
	began := l.log.Len()
	t.Cleanup(func() {
		if t.Failed() {
			harness.KeepLog(t, "operator", l.log.Since(began))
		}
	})
}
