package kube

import (
	"context"
	"fmt"
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Stage is a part of a reconcile that has a span of its own.
type Stage string

// The stages of a reconcile.
const (
	StageObserve Stage = "observe"
	StagePlan    Stage = "plan"
	StageApply   Stage = "apply"
	StageReport  Stage = "report"
)

type tracerKey struct{}

// WithTracer has the reconciles below a context traced.
func WithTracer(ctx context.Context, tracer trace.Tracer) context.Context {
	return context.WithValue(ctx, tracerKey{}, tracer)
}

// Traced gives each reconcile a trace, if the context of its controller has a tracer.
func Traced[T comparable](name string, reconciler reconcile.TypedReconciler[T]) reconcile.TypedReconciler[T] {
	return tracedReconciler[T]{name, reconciler}
}

type tracedReconciler[T comparable] struct {
	controller string
	next       reconcile.TypedReconciler[T]
}

func (r tracedReconciler[T]) Reconcile(ctx context.Context, request T) (reconcile.Result, error) {
	tracer, ok := ctx.Value(tracerKey{}).(trace.Tracer)
	if !ok {
		return r.next.Reconcile(ctx, request)
	}
	ctx, span := tracer.Start(ctx, "reconcile "+r.controller, trace.WithNewRoot(), trace.WithAttributes(
		attribute.String("fairlead.controller", r.controller), attribute.String("fairlead.object", fmt.Sprint(request)),
		attribute.String("fairlead.reconcile_id", string(controller.ReconcileIDFromContext(ctx))),
	))
	defer span.End()
	result, err := r.next.Reconcile(ctx, request)
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	return result, err
}

func noSpan() {}

// Span starts the span of a stage in the trace of a reconcile, puts it into the context, and returns what ends it. Without a trace it
// does nothing:
//
//	defer kube.Span(&ctx, kube.StageObserve)()
func Span(ctx *context.Context, stage Stage) func() {
	parent := trace.SpanFromContext(*ctx)
	if !parent.IsRecording() {
		return noSpan
	}
	inner, span := parent.TracerProvider().Tracer("fairlead").Start(*ctx, string(stage))
	*ctx = inner
	return func() { span.End() }
}

// TraceRequests gives each request that is part of a traced reconcile a span, and passes the trace on to the server. Other requests,
// such as watches, are left as they are.
func TraceRequests(provider trace.TracerProvider) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(next, otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(propagation.TraceContext{}),
			otelhttp.WithFilter(func(r *http.Request) bool { return trace.SpanFromContext(r.Context()).IsRecording() }),
			otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return r.Method + " " + r.URL.Path }))
	}
}
