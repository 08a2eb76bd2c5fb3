package conversion

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// What became of a review.
const (
	converted = "converted"
	failed    = "failed"
	refused   = "refused"
)

var reviews = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "fairlead_conversion_reviews_total",
	Help: "Reviews that this process was asked to convert, by result: converted, failed (an object could not be converted) or refused " +
		"(the review cannot be read, or is too large for the memory of conversions).",
}, []string{"result"})

func init() {
	metrics.Registry.MustRegister(reviews)
	for _, result := range []string{converted, failed, refused} {
		// A rate needs the zero before the first one.
		reviews.WithLabelValues(result)
	}
}

// Handler answers the API server's requests to convert. It does not know whose requests they are. All that it converts at once
// takes about as much memory as it is given, and it refuses what there is no memory for.
func Handler(log logr.Logger, memory int64) http.Handler {
	budget := newBudget(memory)
	// Nobody may fill the log.
	limit := flowcontrol.NewTokenBucketPassiveRateLimiter(1, 10)
	logError := func(err error, message string, keysAndValues ...any) {
		if limit.TryAccept() {
			log.Error(err, message, keysAndValues...)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "send a "+reviewKind+" by POST", http.StatusMethodNotAllowed)
			return
		}
		refuse := func(err error) {
			code := statusOf(err)
			if code == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", "1")
			}
			reviews.WithLabelValues(refused).Inc()
			logError(err, "Refused a conversion review", "status", code, "bytes", r.ContentLength, "client", r.RemoteAddr)
			http.Error(w, err.Error(), code)
		}
		reserved, err := budget.reserve(r.Context(), r.ContentLength)
		if err != nil {
			refuse(err)
			return
		}
		defer reserved.release()
		review := newReview(r.Body, budget, reserved)
		if err := review.read(r.Context()); err != nil {
			refuse(fmt.Errorf("read the review: %w", err))
			return
		}
		result := converted
		if review.failed > 0 {
			result = failed
			logError(errors.New(review.message()), "Could not convert", "review", review.uid, "to", review.desired, "objects", review.count)
		}
		reviews.WithLabelValues(result).Inc()
		if err := review.write(w); err != nil {
			logError(err, "Could not answer a conversion review", "review", review.uid)
		}
	})
}

func statusOf(err error) int {
	var tooLarge *tooLargeError
	var valueTooLarge *valueTooLargeError
	var busy *busyError
	switch {
	case errors.As(err, &tooLarge), errors.As(err, &valueTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.As(err, &busy):
		return http.StatusTooManyRequests
	}
	return http.StatusBadRequest
}
