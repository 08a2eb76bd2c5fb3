package rollout

import (
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// unheard is what environmentd did not do that it was asked to. It is asked again.
type unheard struct{ error }

func (u unheard) Unwrap() error { return u.error }

func heard(err error) error {
	if err == nil {
		return nil
	}
	return unheard{err}
}

// unplannable is what only another spec can help with.
type unplannable struct{ error }

func (u unplannable) Unwrap() error { return u.error }

// worthTelling holds for what people have to know of: it would be the same if it were tried again at once, and does not
// pass like the trouble of an API server.
func worthTelling(err error) bool {
	return errors.As(err, new(unheard)) || errors.As(err, new(unplannable)) || errors.As(err, new(noCertManager)) ||
		apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

const (
	// pollPause is how long environmentd is left alone while it is waited for.
	pollPause = time.Second
	// parkedPause is how long it is while a person is waited for.
	parkedPause = 10 * time.Second
	// promotingPause is the longest that it is left alone while it takes over: until users are led to it, nobody serves them.
	promotingPause = 2 * time.Second
	// longestPause is how long anything is left alone that has failed again and again.
	longestPause = 30 * time.Second
	// conflictPause lets the cache see what somebody else has just written.
	conflictPause = 100 * time.Millisecond
)

// patience is how long to wait after a failure: longer each time.
type patience struct {
	mu     sync.Mutex
	failed map[types.NamespacedName]int
}

func (p *patience) after(key types.NamespacedName, failed bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !failed {
		delete(p.failed, key)
		return pollPause
	}
	if p.failed == nil {
		p.failed = map[types.NamespacedName]int{}
	}
	pause := min(pollPause<<min(p.failed[key], 10), longestPause)
	p.failed[key]++
	return pause
}
