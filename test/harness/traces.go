package harness

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/fairlead/fairlead/internal/kube"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// TraceReceiver is what operators send traces to, as a user's collector would be.
type TraceReceiver struct {
	collector.UnimplementedTraceServiceServer
	address string

	mu sync.Mutex
	// traces have the names of spans by the ID of the span, by the ID of the trace.
	traces map[string]map[string]receivedSpan
}

type receivedSpan struct{ name, parent string }

// Traces is the receiver of this process, started by whoever asks first.
var Traces = sync.OnceValue(func() *TraceReceiver {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	r := &TraceReceiver{address: listener.Addr().String(), traces: map[string]map[string]receivedSpan{}}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	go func() { _ = server.Serve(listener) }()
	cluster.AtEnd(server.Stop)
	return r
})

// Flag has an operator send its traces here.
func (r *TraceReceiver) Flag() string { return "--tracing-endpoint=http://" + r.address }

// Export receives spans.
func (r *TraceReceiver) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range request.GetResourceSpans() {
		for _, scope := range of.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				trace := string(span.GetTraceId())
				if r.traces[trace] == nil {
					r.traces[trace] = map[string]receivedSpan{}
				}
				r.traces[trace][string(span.GetSpanId())] = receivedSpan{span.GetName(), string(span.GetParentSpanId())}
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// HasStages waits until a trace of a controller has a span for each stage below that of the reconcile, and one for a request to an
// API server below one of these.
func (r *TraceReceiver) HasStages(t testing.TB, controller string) {
	t.Helper()
	wait.Until(t, func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		var closest []string
		for _, spans := range r.traces {
			below := stagesOf(spans, "reconcile "+controller)
			if len(below) == 5 {
				return nil
			}
			if len(below) > len(closest) {
				closest = below
			}
		}
		return fmt.Errorf("of %d traces, none of %s has all stages and a request; the closest has %v", len(r.traces), controller, closest)
	})
}

// stagesOf are the stages of a trace whose root has that name, and "request" if one of them has made one.
func stagesOf(spans map[string]receivedSpan, root string) []string {
	found := map[string]bool{}
	for _, span := range spans {
		parent := spans[span.parent]
		stage := kube.Stage(span.name)
		switch {
		case parent.name == root && slices.Contains(stages, stage):
			found[span.name] = true
		case slices.Contains(stages, kube.Stage(parent.name)) && spans[parent.parent].name == root && strings.Contains(span.name, " /api"):
			found["request"] = true
		}
	}
	var names []string
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

var stages = []kube.Stage{kube.StageObserve, kube.StagePlan, kube.StageApply, kube.StageReport}
