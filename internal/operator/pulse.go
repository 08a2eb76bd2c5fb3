package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// pulse is what leader election learns, by asking every other second, about the API server and about the lease.
type pulse struct {
	server string
	times  leaseTimes

	mu       sync.Mutex
	lease    string
	identity string
	// answered is when the server last gave an answer, any answer; until it has, when it was first asked.
	answered time.Time
	// renewed is when this operator last wrote itself into the lease, and trying when it first tried to after that.
	renewed time.Time
	trying  time.Time
	holder  string
	// failure is the latest since then.
	failure error
}

// through lets the pulse be felt at every use of a lock.
func (p *pulse) through(lock resourcelock.Interface) resourcelock.Interface {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lease, p.identity = lock.Describe(), lock.Identity()
	return &pulsingLock{Interface: lock, pulse: p}
}

func (p *pulse) asked(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answered.IsZero() {
		p.answered = now
	}
	if p.trying.IsZero() {
		p.trying = now
	}
}

// tooLate to renew the lease or to let go of it. Without this, one that cannot reach its server would first wait for an
// answer about letting go, and act on beyond the end of its lease meanwhile.
func (p *pulse) tooLate(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.renewed.IsZero() && !p.trying.IsZero() && now.Sub(p.trying) >= p.times.renewDeadline-100*time.Millisecond
}

// heard takes in how the server answered, and what the lease said or was made to say.
func (p *pulse) heard(now time.Time, record *resourcelock.LeaderElectionRecord, written bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !passing(err) {
		p.answered = now
	}
	if err != nil {
		p.failure = err
		return
	}
	p.holder = record.HolderIdentity
	if written && p.holder == p.identity {
		p.renewed, p.trying, p.failure = now, time.Time{}, nil
	}
}

// meanwhile asks the server itself, until it is over: an operator that serves webhooks is ready before it takes part in leader
// election, and nobody else would notice.
func (p *pulse) meanwhile(ctx context.Context, ask func(context.Context) error, over func() bool) {
	set := func(answered time.Time) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.answered = answered
	}
	set(time.Now())
	for !over() && ctx.Err() == nil {
		if err := ask(ctx); err == nil || !passing(err) {
			set(time.Now())
		}
		select {
		case <-ctx.Done():
		case <-time.After(p.times.retryPeriod):
		}
	}
	set(time.Time{})
}

// check fails while the API server cannot be reached: this operator then acts on nothing, leading or standing by.
func (p *pulse) check(now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if silence := now.Sub(p.answered); !p.answered.IsZero() && silence >= p.times.renewDeadline {
		return fmt.Errorf("the API server %s has not answered for %s", p.server, silence.Round(time.Second))
	}
	return nil
}

// lost says how the lease was lost, or nil if it was not.
func (p *pulse) lost(now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := now.Sub(p.renewed)
	if p.renewed.IsZero() || since < p.times.renewDeadline {
		return nil
	}
	why := fmt.Sprintf("it was not renewed for %s", since.Round(time.Second))
	switch {
	case p.holder != "" && p.holder != p.identity:
		why = p.holder + " holds it now"
	case passing(p.failure):
		why = fmt.Sprintf("the API server %s could not be reached for %s", p.server, since.Round(time.Second))
	case p.failure != nil:
		why += ": " + p.failure.Error()
	}
	return fmt.Errorf("lost the lease %s: %s; start the operator again (a Deployment does)", p.lease, why)
}

type pulsingLock struct {
	resourcelock.Interface
	pulse *pulse
}

var errTooLate = errors.New("too late, the lease is about to run out")

func (l *pulsingLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.pulse.tooLate(time.Now()) {
		return nil, nil, errTooLate
	}
	l.pulse.asked(time.Now())
	record, raw, err := l.Interface.Get(ctx)
	l.pulse.heard(time.Now(), record, false, err)
	return record, raw, err
}

func (l *pulsingLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.pulse.asked(time.Now())
	err := l.Interface.Create(ctx, record)
	l.pulse.heard(time.Now(), &record, true, err)
	return err
}

func (l *pulsingLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.pulse.asked(time.Now())
	err := l.Interface.Update(ctx, record)
	l.pulse.heard(time.Now(), &record, true, err)
	return err
}
