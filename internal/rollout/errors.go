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
type environmentdError struct{ error }

func (u environmentdError) Unwrap() error { return u.error }

func asEnvironmentdError(err error) error {
	if err == nil {
		return nil
	}
	return environmentdError{err}
}

// unplannable is what only another spec can help with.
type specError struct{ error }

func (u specError) Unwrap() error { return u.error }

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
type applyErrors struct {
	blocking  error
	tolerated []error
}

// lasting leaves out what may have passed by the next time.
func (s applyErrors) withoutTransient() applyErrors {
	lasting := applyErrors{blocking: s.blocking}
	for _, err := range s.tolerated {
		if !errors.As(err, new(transient)) {
			lasting.tolerated = append(lasting.tolerated, err)
		}
	}
	return lasting
}

func (s applyErrors) any() bool { return s.blocking != nil || len(s.tolerated) > 0 }

// besides is what a sentence ends with that is about something else.
const also = "; also: "

// besides tells of what a rollout goes on without, at the end of a sentence.
func (s applyErrors) suffix() string {
	if len(s.tolerated) == 0 {
		return ""
	}
	return also + s.toleratedText()
}

func (s applyErrors) toleratedText() string {
	var all []string
	for _, err := range s.tolerated {
		all = append(all, err.Error())
	}
	return strings.Join(all, "; ")
}

// noCertManager is why a certificate cannot be asked for.
type noCertManager struct{ certificate string }

func (e noCertManager) Error() string {
	return fmt.Sprintf("the spec requires Certificate %s, and cert-manager is not installed: install cert-manager, or remove "+
		"internalCertificateSpec, balancerdExternalCertificateSpec and consoleExternalCertificateSpec", e.certificate)
}

// worthTelling holds for what people have to know of: it would be the same if it were tried again at once, and does not
// pass like the trouble of an API server.
func isReportable(err error) bool {
	return errors.As(err, new(environmentdError)) || errors.As(err, new(specError)) || errors.As(err, new(noCertManager)) ||
		apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

const (
	// pollPause is how long environmentd is left alone while it is waited for.
	pollInterval = time.Second
	// parkedPause is how long it is while a person is waited for.
	approvalPollInterval = 10 * time.Second
	// promotingPause is the longest that it is left alone while it takes over: until users are led to it, nobody serves them.
	maxPromotingInterval = 2 * time.Second
	// longestPause is how long anything is left alone that has failed again and again.
	maxBackoff = 30 * time.Second
	// longestRetry is how long the queue leaves anything alone. What is promoting must not wait for longer.
	maxRetryDelay = 5 * time.Second
	// conflictPause lets the cache see what somebody else has just written.
	conflictRequeueDelay = 100 * time.Millisecond
)

// patience is how long to wait after a failure: longer each time.
type failureBackoff struct {
	mu     sync.Mutex
	failed map[types.NamespacedName]int
}

// worn tells whether something has failed so often in a row that it will hardly pass by itself.
func (p *failureBackoff) isPersistent(key types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed[key] >= 2
}

func (p *failureBackoff) next(key types.NamespacedName, failed bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !failed {
		delete(p.failed, key)
		return pollInterval
	}
	if p.failed == nil {
		p.failed = map[types.NamespacedName]int{}
	}
	pause := min(pollInterval<<min(p.failed[key], 10), maxBackoff)
	p.failed[key]++
	return pause
}
