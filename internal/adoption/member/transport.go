package member

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"sync/atomic"

	"k8s.io/client-go/transport"
)

const (
	// minAnswerBytes lets objects of any size be read, and lists of some thousands.
	minAnswerBytes = 32 << 20
	// maxAnswerBytes is what answers may take of an operator without a memory limit.
	maxAnswerBytes = 512 << 20
	// maxEventBytes is the size of an event of a watch. No object in etcd is as large.
	maxEventBytes = 16 << 20
)

// answerBytes is how much the answers of one cluster may hold at a time in an operator with a memory limit: decoded, they take a few
// times as much.
func answerBytes(memoryLimit int64) int64 {
	return min(max(memoryLimit/8, minAnswerBytes), maxAnswerBytes)
}

// limitAnswers keeps a cluster from leading the requests of the hub elsewhere, and its answers from filling the memory of the hub.
// The transports that it wraps share the limit.
func limitAnswers(cluster string) transport.WrapperFunc {
	limits := &answerLimits{cluster: cluster, limit: answerBytes(debug.SetMemoryLimit(-1))}
	return func(base http.RoundTripper) http.RoundTripper {
		return &answerLimiter{base: base, answerLimits: limits}
	}
}

type answerLimits struct {
	cluster string
	limit   int64
	// held are the bytes of all answers that are being read.
	held atomic.Int64
}

type answerLimiter struct {
	base http.RoundTripper
	*answerLimits
}

// RoundTrip sends a request.
func (l *answerLimiter) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.base.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 && response.Header.Get("Location") != "" {
		_ = response.Body.Close()
		return nil, fmt.Errorf("cluster %s redirects to %q, which is not followed: name the API server itself in spec.apiEndpoint of the Cluster",
			l.cluster, response.Header.Get("Location"))
	}
	switch watch := request.URL.Query().Get("watch"); watch {
	case "true", "1":
		response.Body = &watchBody{ReadCloser: response.Body, cluster: l.cluster}
	default:
		response.Body = &answerBody{ReadCloser: response.Body, limits: l.answerLimits}
	}
	return response, nil
}

// WrappedRoundTripper is the transport within, for what cancels requests and closes connections.
func (l *answerLimiter) WrappedRoundTripper() http.RoundTripper { return l.base }

// answerBody is an answer that is read as a whole before it is decoded.
type answerBody struct {
	io.ReadCloser
	limits *answerLimits
	read   int64
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if held := b.limits.held.Add(int64(n)); held > b.limits.limit {
		return 0, fmt.Errorf("the answers of cluster %s take more than the %d MiB that the operator has for them: "+
			"raise the memory limit of the operator (resources.limits.memory of the chart), or find out what the cluster answers", b.limits.cluster, b.limits.limit>>20)
	}
	return n, err
}

func (b *answerBody) Close() error {
	b.limits.held.Add(-b.read)
	b.read = 0
	return b.ReadCloser.Close()
}

// watchBody is an answer without an end, of events that are decoded one by one, each on a line of its own.
type watchBody struct {
	io.ReadCloser
	cluster string
	event   int64
}

func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if end := bytes.LastIndexByte(p[:n], '\n'); end >= 0 {
		b.event = int64(n - end - 1)
	} else {
		b.event += int64(n)
	}
	if b.event > maxEventBytes {
		return 0, fmt.Errorf("an event of cluster %s is larger than %d MiB, and is not read", b.cluster, maxEventBytes>>20)
	}
	return n, err
}
