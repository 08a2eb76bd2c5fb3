package rollout

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/fairlead/fairlead/internal/kube"
)

// environmentdError is a request that environmentd has not fulfilled. It is retried.
type environmentdError struct{ error }

func (u environmentdError) Unwrap() error { return u.error }

func asEnvironmentdError(err error) error {
	if err == nil {
		return nil
	}
	return environmentdError{err}
}

// specError is resolved by a change of the spec, or by installing what the spec requires.
type specError struct{ error }

func (u specError) Unwrap() error { return u.error }

// transient is an error that may pass by itself. Its text is always the same, because it is written to the status; that of
// the API server may contain addresses and ports that differ with every attempt.
type transient struct{ error }

func (t transient) Unwrap() error { return t.error }

func (t transient) Error() string {
	if reason := apierrors.ReasonForError(t.error); reason != metav1.StatusReasonUnknown {
		return fmt.Sprintf("the request to the API server failed (%s)", reason)
	}
	return "the request to the API server failed"
}

// applyErrors are the errors of one reconcile: the one that stopped it, and those of steps that a rollout does not wait for.
type applyErrors struct {
	blocking  error
	tolerated []error
}

// withoutTransient leaves out errors that may have passed by the next attempt.
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

// suffix is the tolerated errors, as the end of a message.
func (s applyErrors) suffix() string {
	if len(s.tolerated) == 0 {
		return ""
	}
	return "; also: " + s.toleratedText()
}

func (s applyErrors) toleratedText() string {
	var all []string
	for _, err := range s.tolerated {
		all = append(all, err.Error())
	}
	return strings.Join(all, "; ")
}

// isReportable holds for errors that the status reports: an immediate retry would not help, and they last, unlike those of an
// overloaded API server.
func isReportable(err error) bool {
	return errors.As(err, new(environmentdError)) || errors.As(err, new(specError)) || kube.IsRejected(err)
}

const (
	// pollInterval is how often environmentd is asked while it is waited for.
	pollInterval = time.Second
	// approvalPollInterval is how often it is asked while a person is waited for.
	approvalPollInterval = 10 * time.Second
	// maxPromotingInterval is short: until the Service is switched to the new leader, nothing serves.
	maxPromotingInterval = 2 * time.Second
	// maxBackoff is the longest delay after repeated failures.
	maxBackoff = 30 * time.Second
	// maxRetryDelay is the longest delay of the queue, for promotions too.
	maxRetryDelay = 5 * time.Second
)

// failureBackoff is the delay after consecutive failures.
type failureBackoff struct {
	workqueue.TypedRateLimiter[types.NamespacedName]
}

func newFailureBackoff() failureBackoff {
	return failureBackoff{workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](pollInterval, maxBackoff)}
}

// isPersistent tells whether so many attempts in a row have failed that the error will hardly pass by itself.
func (b failureBackoff) isPersistent(key types.NamespacedName) bool { return b.NumRequeues(key) >= 2 }

func (b failureBackoff) next(key types.NamespacedName, failed bool) time.Duration {
	if !failed {
		b.Forget(key)
		return pollInterval
	}
	return b.When(key)
}
