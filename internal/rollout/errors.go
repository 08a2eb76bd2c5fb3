package rollout

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// transient is what may pass by itself. It is told in the same words each time, for they end up in a status; those of the
// API server may have addresses and ports in them that are others with every attempt.
type transient struct{ error }

func (t transient) Unwrap() error { return t.error }

func (t transient) Error() string {
	if reason := apierrors.ReasonForError(t.error); reason != metav1.StatusReasonUnknown {
		return fmt.Sprintf("the request to the API server failed (%s)", reason)
	}
	return "the request to the API server failed"
}

// setbacks are what could not be done: what stopped all that was to follow, and what a rollout goes on without.
type setbacks struct {
	stopped error
	aside   []error
}

// lasting leaves out what may have passed by the next time.
func (s setbacks) lasting() setbacks {
	lasting := setbacks{stopped: s.stopped}
	for _, err := range s.aside {
		if !errors.As(err, new(transient)) {
			lasting.aside = append(lasting.aside, err)
		}
	}
	return lasting
}

func (s setbacks) any() bool { return s.stopped != nil || len(s.aside) > 0 }

// besides is what a sentence ends with that is about something else.
const besides = "; also: "

// besides tells of what a rollout goes on without, at the end of a sentence.
func (s setbacks) besides() string {
	if len(s.aside) == 0 {
		return ""
	}
	return besides + s.beside()
}

func (s setbacks) beside() string {
	var all []string
	for _, err := range s.aside {
		all = append(all, err.Error())
	}
	return strings.Join(all, "; ")
}

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
	// longestRetry is how long the queue leaves anything alone. What is promoting must not wait for longer.
	longestRetry = 5 * time.Second
	// conflictPause lets the cache see what somebody else has just written.
	conflictPause = 100 * time.Millisecond
)

// patience is how long to wait after a failure: longer each time.
type patience struct {
	mu     sync.Mutex
	failed map[types.NamespacedName]int
}

// worn tells whether something has failed so often in a row that it will hardly pass by itself.
func (p *patience) worn(key types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed[key] >= 2
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
