package kube

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// fourStages is a reconcile that asks the server once in each stage, and fails.
func fourStages(server string, client *http.Client) reconcile.Reconciler {
	stage := func(ctx context.Context, name Stage) error {
		defer Span(&ctx, name)()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/api/"+string(name), nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	return reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		for _, name := range []Stage{StageObserve, StagePlan, StageApply, StageReport} {
			if err := stage(ctx, name); err != nil {
				return reconcile.Result{}, err
			}
		}
		return reconcile.Result{}, errors.New("the status cannot be written")
	})
}

func TestTraces(t *testing.T) {
	var passedOn []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		passedOn = append(passedOn, r.Header.Get("Traceparent"))
	}))
	defer server.Close()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	client := &http.Client{Transport: TraceRequests(provider)(http.DefaultTransport)}
	reconciler := Traced("istio", fourStages(server.URL, client))

	for range 2 {
		if _, err := reconciler.Reconcile(t.Context(), reconcile.Request{}); err == nil {
			t.Error("the error is lost")
		}
	}
	if spans := recorder.Ended(); len(spans) > 0 {
		t.Errorf("without a tracer there are %d spans", len(spans))
	}

	_, _ = reconciler.Reconcile(WithTracer(t.Context(), provider.Tracer("fairlead")), reconcile.Request{})
	names, got := map[string]string{}, map[string]string{}
	for _, span := range recorder.Ended() {
		names[span.SpanContext().SpanID().String()] = span.Name()
	}
	for _, span := range recorder.Ended() {
		got[span.Name()] = names[span.Parent().SpanID().String()]
	}
	want := map[string]string{"reconcile istio": ""}
	for _, stage := range []string{"observe", "plan", "apply", "report"} {
		want[stage], want["GET /api/"+stage] = "reconcile istio", stage
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans and their parents (-want +got):\n%s", diff)
	}
	if root := recorder.Ended()[len(recorder.Ended())-1]; root.Status().Description != "the status cannot be written" {
		t.Errorf("the trace does not say what went wrong: %+v", root.Status())
	}
	for i, header := range passedOn {
		if (header != "") != (i >= 8) {
			t.Errorf("request %d was sent with the trace %q", i, header)
		}
	}
}

// Nobody pays for traces that nobody wants.
func TestNoTraceCostsNothing(t *testing.T) {
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { Span(&ctx, StagePlan)() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
