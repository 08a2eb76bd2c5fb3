package server

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// cause is why a connection or stream was rejected or closed by the server.
type cause string

// The causes.
const (
	causeConnections  cause = "connections"
	causePending      cause = "pending"
	causeStreams      cause = "streams"
	causeHandshake    cause = "handshake"
	causeTimeout      cause = "timeout"
	causeRequestSize  cause = "request_size"
	causeSlowReader   cause = "slow_reader"
	causeTokenReviews cause = "token_reviews"
	causeIdentity     cause = "identity"
	causeUnknownProxy cause = "unknown_proxy"
	causeRequest      cause = "invalid_request"
)

// rejection is an error with its cause.
type rejection struct {
	cause cause
	*status.Status
}

func (r *rejection) Error() string              { return r.Status.Err().Error() }
func (r *rejection) GRPCStatus() *status.Status { return r.Status }

func rejectf(why cause, code codes.Code, format string, values ...any) error {
	return &rejection{why, status.New(code, fmt.Sprintf(format, values...))}
}

func isRejection(err error) bool {
	var known *rejection
	return errors.As(err, &known)
}

// causeOf returns the cause of an error, by its code if the error has none.
func causeOf(err error) cause {
	var known *rejection
	if errors.As(err, &known) {
		return known.cause
	}
	switch status.Code(err) {
	case codes.Unauthenticated, codes.PermissionDenied:
		return causeIdentity
	case codes.DeadlineExceeded:
		return causeTimeout
	case codes.ResourceExhausted:
		return causeRequestSize
	case codes.Unavailable:
		return causeUnknownProxy
	default:
		return causeRequest
	}
}

// logInterval is how often rejections of one cause are logged.
const logInterval = time.Second

// rejectionLog counts every rejection and logs some: a flood of clients is none of lines.
type rejectionLog struct {
	log logr.Logger
	now func() time.Time

	mu     sync.Mutex
	causes map[cause]*loggedCause
}

type loggedCause struct {
	last time.Time
	// omitted is how many were not logged since.
	omitted int
}

func newRejectionLog(log logr.Logger) *rejectionLog {
	return &rejectionLog{log: log, now: time.Now, causes: map[cause]*loggedCause{}}
}

// record records a rejection of a client at an address, which may claim to be a proxy.
func (r *rejectionLog) record(err error, address, proxy string) {
	why := causeOf(err)
	rejected.WithLabelValues(string(why)).Inc()
	r.mu.Lock()
	logged := r.causes[why]
	if logged == nil {
		logged = &loggedCause{}
		r.causes[why] = logged
	}
	now := r.now()
	if !logged.last.IsZero() && now.Sub(logged.last) < logInterval {
		logged.omitted++
		r.mu.Unlock()
		return
	}
	omitted := logged.omitted
	logged.last, logged.omitted = now, 0
	r.mu.Unlock()
	r.log.Info("proxy rejected", "cause", string(why), "address", address, "proxy", proxy, "why", status.Convert(err).Message(), "notLogged", omitted)
}

var rejected = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "fairlead_mesh_rejected_total",
	Help: "Connections and streams that the xDS server rejected or closed, by cause.",
}, []string{"cause"})

func init() {
	metrics.Registry.MustRegister(rejected)
	for _, why := range []cause{
		causeConnections, causePending, causeStreams, causeHandshake, causeTimeout, causeRequestSize, causeSlowReader, causeTokenReviews,
		causeIdentity, causeUnknownProxy, causeRequest,
	} {
		// A rate needs the zero before the first one.
		rejected.WithLabelValues(string(why))
	}
}
