// Package tracing sends OpenTelemetry traces when the user has named a place for
// them (OTEL_EXPORTER_OTLP_ENDPOINT) and otherwise does nothing at all. It knows
// no span of thole's: code that does something worth timing starts one.
package tracing

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/tholehq/thole/internal/version"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// collector is where the standard variables send traces, "" for nowhere.
func collector() string {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return ""
	}
	if at := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); at != "" {
		return at
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
}

// Tracer makes spans. A nil one makes none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// Start returns a tracer as the standard variables say, nil without a collector.
func Start(ctx context.Context) (*Tracer, error) {
	at := collector()
	if at == "" {
		return nil, nil
	}
	// The library would take the standard port of this machine instead.
	if u, err := url.Parse(at); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("start tracing: OTEL_EXPORTER_OTLP_ENDPOINT: %q is not a URL such as http://127.0.0.1:4318", at)
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("start tracing: %w", err)
	}
	from, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "thole"), attribute.String("service.version", version.Version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("start tracing: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(from), sdk.WithIDGenerator(ids{}))
	return &Tracer{provider, provider.Tracer("thole")}, nil
}

// Stop sends what is left.
func (t *Tracer) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Span is what a span begins with.
type Span struct {
	Name string
	// Trace names the trace of a span that is within no other.
	Trace string
	Began time.Time // zero: now
	About []string  // names and values of attributes in turns
}

// Begin begins a span; end it with the error of what it times.
func (t *Tracer) Begin(ctx context.Context, s Span) (context.Context, func(error)) {
	if t == nil {
		return ctx, func(error) {}
	}
	opts := []trace.SpanStartOption{trace.WithTimestamp(s.Began)}
	if s.Began.IsZero() {
		opts = nil
	}
	for i := 0; i+1 < len(s.About); i += 2 {
		opts = append(opts, trace.WithAttributes(attribute.String(s.About[i], s.About[i+1])))
	}
	if s.Trace != "" {
		ctx = context.WithValue(ctx, traceKey{}, s.Trace)
	}
	ctx, span := t.tracer.Start(ctx, s.Name, opts...)
	return ctx, func(err error) {
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}
