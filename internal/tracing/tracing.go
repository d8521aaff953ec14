// Package tracing sends OpenTelemetry traces when the user has named a place for
// them (OTEL_EXPORTER_OTLP_ENDPOINT) and otherwise does nothing at all. It knows
// no span of ours: whoever does something worth timing starts one.
package tracing

import (
	"context"
	"fmt"
	"os"

	"github.com/tholehq/thole/internal/version"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Enabled reports whether the environment names a collector.
func Enabled() bool {
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// Start sends spans until stop, which flushes what is left. Without a collector
// it does nothing.
func Start() (stop func(context.Context) error, err error) {
	if !Enabled() {
		return func(context.Context) error { return nil }, nil
	}
	exporter, err := newExporter()
	if err != nil {
		return nil, fmt.Errorf("start tracing: %w", err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(resource.NewSchemaless(
		attribute.String("service.name", "thole"), attribute.String("service.version", version.Version))))
	otel.SetTracerProvider(provider)
	return provider.Shutdown, nil
}

// Span begins a span; end it with the error of what it times.
func Span(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, func(error)) {
	if !Enabled() {
		return ctx, func(error) {}
	}
	ctx, span := otel.Tracer("thole").Start(ctx, name, trace.WithAttributes(attrs...))
	return ctx, func(err error) {
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}
