package operator

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/fairlead/fairlead/internal/version"
)

// TracingOptions say where traces of reconciles are sent.
type TracingOptions struct {
	// Endpoint is the URL of an OTLP receiver (gRPC). Without one, nothing is traced.
	Endpoint string
	// Ratio is how many of the reconciles are traced, from 0 to 1.
	Ratio float64
}

func (o *TracingOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Endpoint, "tracing-endpoint", o.Endpoint,
		"URL of an OpenTelemetry receiver (OTLP over gRPC), such as http://127.0.0.1:4317 or https://HOST:4317, that traces of reconciles are sent to")
	flags.Float64Var(&o.Ratio, "tracing-ratio", o.Ratio, "how many of the reconciles are traced, from 0 to 1")
}

func (o TracingOptions) validate() error {
	if o.Ratio < 0 || o.Ratio > 1 {
		return fmt.Errorf("--tracing-ratio %v is not between 0 and 1", o.Ratio)
	}
	if o.Endpoint == "" {
		return nil
	}
	if at, err := url.Parse(o.Endpoint); err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return fmt.Errorf("--tracing-endpoint %q is not a URL such as http://127.0.0.1:4317 or https://HOST:4317", o.Endpoint)
	}
	return nil
}

// startTracing returns nil without an endpoint. Whoever calls it ends it by Shutdown.
func startTracing(ctx context.Context, o TracingOptions, log logr.Logger) (*sdktrace.TracerProvider, error) {
	if o.Endpoint == "" {
		return nil, nil
	}
	// The connection is made in the background: a receiver that is away holds nothing up.
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(o.Endpoint))
	if err != nil {
		return nil, fmt.Errorf("trace to %s: %w", o.Endpoint, err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.V(1).Info("cannot send traces", "endpoint", o.Endpoint, "why", err.Error())
	}))
	return newTracerProvider(exporter, o.Ratio), nil
}

func newTracerProvider(exporter sdktrace.SpanExporter, ratio float64) *sdktrace.TracerProvider {
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithSampler(sdktrace.TraceIDRatioBased(ratio)),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "fairlead"), attribute.String("service.version", version.Get().Version))))
}

// endTracing sends what was not sent yet.
func endTracing(provider *sdktrace.TracerProvider) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = provider.Shutdown(ctx)
}
