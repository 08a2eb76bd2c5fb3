package operator

import (
	"context"
	"errors"
	"net"
	"net/url"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// knownLock is a lock that is only asked who it is.
type knownLock struct{ resourcelock.Interface }

func (knownLock) Describe() string { return "fairlead-system/fairlead" }
func (knownLock) Identity() string { return "us" }

func TestLeaseMonitor(t *testing.T) {
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	refused := &url.Error{Op: "Put", URL: "https://192.0.2.1:6443", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	type answer struct {
		after   time.Duration
		holder  string
		written bool
		err     error
	}
	renewed := answer{holder: "us", written: true}
	const unreached = "lost the lease fairlead-system/fairlead: the API server https://192.0.2.1:6443 could not be reached for 9s; " +
		"start the operator again (a Deployment does)"
	cases := map[string]struct {
		answers []answer
		at      time.Duration
		ready   string
		lost    string
		tooLate bool
	}{
		"never asked": {at: time.Hour},
		"leading":     {answers: []answer{renewed}, at: time.Second},
		"leading, and not reached for a moment": {
			answers: []answer{renewed, {after: 2 * time.Second, err: refused}},
			at:      7 * time.Second,
		},
		"leading, and not reached for as long as it may": {
			answers: []answer{renewed, {after: 1500 * time.Millisecond, err: refused}},
			at:      9500 * time.Millisecond,
			ready:   "the API server https://192.0.2.1:6443 has not answered for 10s",
			lost: "lost the lease fairlead-system/fairlead: the API server https://192.0.2.1:6443 could not be reached for 10s; " +
				"start the operator again (a Deployment does)",
			tooLate: true,
		},
		"leading, and asleep for an hour": {
			answers: []answer{renewed, {after: time.Hour, holder: "us"}, {after: time.Hour, holder: "us", written: true}},
			at:      time.Hour,
		},
		"leading, and in time again": {
			answers: []answer{renewed, {after: 2 * time.Second, err: refused}, {after: 8 * time.Second, holder: "us", written: true}, {after: 10 * time.Second, err: refused}},
			at:      12 * time.Second,
		},
		"leading, and not reached for too long": {
			answers: []answer{renewed, {after: 8 * time.Second, err: refused}},
			at:      9 * time.Second,
			ready:   "the API server https://192.0.2.1:6443 has not answered for 9s",
			lost:    unreached,
		},
		"leading, and cut off in the middle of a request": {
			answers: []answer{renewed, {after: 8 * time.Second, err: context.DeadlineExceeded}},
			at:      9 * time.Second,
			ready:   "the API server https://192.0.2.1:6443 has not answered for 9s",
			lost:    unreached,
		},
		"reached again only to let go of the lease": {
			answers: []answer{renewed, {after: 8 * time.Second, err: refused}, {after: 9 * time.Second, holder: "us"}, {after: 9 * time.Second, written: true}},
			at:      9 * time.Second,
			lost:    unreached,
		},
		"somebody else took the lease": {
			answers: []answer{renewed, {after: 2 * time.Second, err: apierrors.NewConflict(leases, "fairlead", errors.New("changed"))}, {after: 9 * time.Second, holder: "them"}},
			at:      9 * time.Second,
			lost:    "lost the lease fairlead-system/fairlead: them holds the lease now; start the operator again (a Deployment does)",
		},
		"the permission is gone": {
			answers: []answer{renewed, {after: 9 * time.Second, err: apierrors.NewForbidden(leases, "fairlead", errors.New("no"))}},
			at:      9 * time.Second,
			lost: `lost the lease fairlead-system/fairlead: the lease was not renewed for 9s: leases.coordination.k8s.io "fairlead" is forbidden: no; ` +
				"start the operator again (a Deployment does)",
		},
		"standing by": {answers: []answer{{holder: "them"}}, at: time.Second},
		"standing by, and not reached for too long": {
			answers: []answer{{holder: "them"}, {after: time.Second, err: refused}, {after: 29 * time.Second, err: refused}},
			at:      30 * time.Second,
			ready:   "the API server https://192.0.2.1:6443 has not answered for 30s",
		},
		"standing by, and reached again": {
			answers: []answer{{holder: "them"}, {after: 29 * time.Second, err: refused}, {after: 30 * time.Second, holder: "them"}},
			at:      31 * time.Second,
		},
		"not reached since it was first asked": {
			answers: []answer{{err: refused}, {after: 9 * time.Second, err: refused}},
			at:      10 * time.Second,
			ready:   "the API server https://192.0.2.1:6443 has not answered for 10s",
		},
		"standing by without permission": {
			answers: []answer{{after: 9 * time.Second, err: apierrors.NewForbidden(leases, "fairlead", errors.New("no"))}},
			at:      10 * time.Second,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := &leaseMonitor{server: "https://192.0.2.1:6443", times: leaseTimesOf(defaultLeaseDuration)}
			p.wrap(knownLock{})
			for _, a := range c.answers {
				p.recordRequest(start.Add(a.after))
				p.recordResponse(start.Add(a.after), &resourcelock.LeaderElectionRecord{HolderIdentity: a.holder}, a.written, a.err)
			}
			if got := text(p.check(start.Add(c.at))); got != c.ready {
				t.Errorf("/readyz: got %q, want %q", got, c.ready)
			}
			if got := p.isTooLate(start.Add(c.at)); got != c.tooLate {
				t.Errorf("too late: %v", got)
			}
			if got := text(p.lostError(start.Add(c.at))); got != c.lost {
				t.Errorf("lost: got %q, want %q", got, c.lost)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
