package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/fairlead/fairlead/internal/operator/lease"
)

// leaseMonitor records what leader election learns about the API server and the lease.
type leaseMonitor struct {
	server string
	times  leaseTimes

	mu       sync.Mutex
	lease    string
	identity string
	// lastResponse is when the server last responded in any way; before that, when the first request was sent.
	lastResponse time.Time
	// renewed is when this operator last renewed the lease, and renewingSince when it first tried to after that.
	renewed       time.Time
	renewingSince time.Time
	holder        string
	// failure is the latest error since then.
	failure error
	// holders of the leases of the passages, and of former leases in the way.
	holders []lease.Holder
	log     logr.Logger
}

// restart forgets the lease of passages that no longer run.
func (p *leaseMonitor) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lease, p.identity, p.holder, p.holders, p.failure = "", "", "", nil, nil
	p.lastResponse, p.renewed, p.renewingSince = time.Time{}, time.Time{}, time.Time{}
}

// wrap records every use of a lock.
func (p *leaseMonitor) wrap(lock resourcelock.Interface) resourcelock.Interface {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lease, p.identity = lock.Describe(), lock.Identity()
	return &monitoredLock{Interface: lock, monitor: p}
}

func (p *leaseMonitor) recordRequest(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lastResponse.IsZero() {
		p.lastResponse = now
	}
	if p.renewingSince.IsZero() {
		p.renewingSince = now
	}
}

// isTooLate tells whether it is too late to renew or release the lease. Without this, an operator that cannot reach its server
// would wait for a response to the release, and act beyond the end of its lease meanwhile.
func (p *leaseMonitor) isTooLate(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.renewed.IsZero() && !p.renewingSince.IsZero() && now.Sub(p.renewingSince) >= p.times.renewDeadline-100*time.Millisecond
}

// recordResponse records a response of the server, and the lease as it was read or written.
func (p *leaseMonitor) recordResponse(now time.Time, record *resourcelock.LeaderElectionRecord, written bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !isTransient(err) {
		p.lastResponse = now
	}
	if err != nil {
		p.failure = err
		return
	}
	p.holder = record.HolderIdentity
	if written && p.holder == p.identity {
		p.renewed, p.renewingSince, p.failure = now, time.Time{}, nil
	}
}

// pollServer polls the server until leader election does: an operator that serves webhooks is ready before that.
func (p *leaseMonitor) pollServer(ctx context.Context, ask func(context.Context) error, over func() bool) {
	set := func(answered time.Time) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.lastResponse = answered
	}
	set(time.Now())
	for !over() && ctx.Err() == nil {
		if err := ask(ctx); err == nil || !isTransient(err) {
			set(time.Now())
		}
		select {
		case <-ctx.Done():
		case <-time.After(p.times.retryPeriod):
		}
	}
	set(time.Time{})
}

// check fails while the API server cannot be reached.
func (p *leaseMonitor) check(now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if silence := now.Sub(p.lastResponse); !p.lastResponse.IsZero() && silence >= p.times.renewDeadline {
		return fmt.Errorf("the API server %s has not answered for %s", p.server, silence.Round(time.Second))
	}
	return nil
}

// lostError is how the lease was lost, or nil.
func (p *leaseMonitor) lostError(now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := now.Sub(p.renewed)
	if p.renewed.IsZero() || since < p.times.renewDeadline {
		return nil
	}
	why := fmt.Sprintf("the lease was not renewed for %s", since.Round(time.Second))
	switch {
	case p.holder != "" && p.holder != p.identity:
		why = p.holder + " holds the lease now"
	case isTransient(p.failure):
		why = fmt.Sprintf("the API server %s could not be reached for %s", p.server, since.Round(time.Second))
	case p.failure != nil:
		why += ": " + p.failure.Error()
	}
	return fmt.Errorf("lost the lease %s: %s; start the operator again (a Deployment does)", p.lease, why)
}

type monitoredLock struct {
	resourcelock.Interface
	monitor *leaseMonitor
}

var errTooLate = errors.New("too late, the lease is about to run out")

func (l *monitoredLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.monitor.isTooLate(time.Now()) {
		return nil, nil, errTooLate
	}
	l.monitor.recordRequest(time.Now())
	record, raw, err := l.Interface.Get(ctx)
	l.monitor.recordResponse(time.Now(), record, false, err)
	return record, raw, err
}

func (l *monitoredLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.monitor.recordRequest(time.Now())
	err := l.Interface.Create(ctx, record)
	l.monitor.recordResponse(time.Now(), &record, true, err)
	return err
}

func (l *monitoredLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.monitor.recordRequest(time.Now())
	err := l.Interface.Update(ctx, record)
	l.monitor.recordResponse(time.Now(), &record, true, err)
	return err
}
