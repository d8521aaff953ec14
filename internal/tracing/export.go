package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// exporter sends spans as OTLP in JSON over HTTP. The official one brings gRPC
// and protobuf along, whose set-up every command of ours would pay for.
type exporter struct {
	url     string
	headers http.Header
	client  *http.Client
}

// newExporter reads the standard variables of the environment.
func newExporter() (*exporter, error) {
	address := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if address == "" {
		address = strings.TrimSuffix(os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), "/") + "/v1/traces"
	}
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %q is not a URL such as http://127.0.0.1:4318", address)
	}
	e := &exporter{url: address, headers: http.Header{"Content-Type": {"application/json"}}, client: &http.Client{Timeout: 10 * time.Second}}
	for pair := range strings.SplitSeq(os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"), ",") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			if plain, err := url.PathUnescape(strings.TrimSpace(value)); err == nil {
				e.headers.Set(strings.TrimSpace(name), plain)
			}
		}
	}
	return e, nil
}

// Shutdown implements sdk.SpanExporter.
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}

// ExportSpans implements sdk.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	body, err := json.Marshal(encode(spans))
	if err != nil {
		return fmt.Errorf("send traces: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("send traces: %w", err)
	}
	req.Header = e.headers.Clone()
	resp, err := e.client.Do(req)
	if err != nil {
		return fmt.Errorf("send traces: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	if resp.StatusCode >= 300 {
		return fmt.Errorf("send traces: the collector answered %s", resp.Status)
	}
	return nil
}

type object = map[string]any

// encode spells spans as an ExportTraceServiceRequest. All of ours have one
// resource and one scope.
func encode(spans []sdk.ReadOnlySpan) object {
	list := make([]object, len(spans))
	for i, s := range spans {
		span := object{
			"traceId": s.SpanContext().TraceID().String(), "spanId": s.SpanContext().SpanID().String(),
			"name": s.Name(), "kind": int(s.SpanKind()), "attributes": pairs(s.Attributes()),
			"startTimeUnixNano": nanos(s.StartTime()), "endTimeUnixNano": nanos(s.EndTime()),
		}
		if s.Parent().HasSpanID() {
			span["parentSpanId"] = s.Parent().SpanID().String()
		}
		events := make([]object, len(s.Events()))
		for j, ev := range s.Events() {
			events[j] = object{"name": ev.Name, "timeUnixNano": nanos(ev.Time), "attributes": pairs(ev.Attributes)}
		}
		span["events"] = events
		switch s.Status().Code { // the wire has 1 for ok and 2 for an error, the API the reverse
		case codes.Error:
			span["status"] = object{"code": 2, "message": s.Status().Description}
		case codes.Ok:
			span["status"] = object{"code": 1}
		}
		list[i] = span
	}
	return object{"resourceSpans": []object{{
		"resource":   object{"attributes": pairs(spans[0].Resource().Attributes())},
		"scopeSpans": []object{{"scope": object{"name": spans[0].InstrumentationScope().Name}, "spans": list}},
	}}}
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func pairs(attrs []attribute.KeyValue) []object {
	out := make([]object, len(attrs))
	for i, a := range attrs {
		var v object
		switch a.Value.Type() {
		case attribute.BOOL:
			v = object{"boolValue": a.Value.AsBool()}
		case attribute.INT64:
			v = object{"intValue": strconv.FormatInt(a.Value.AsInt64(), 10)}
		case attribute.FLOAT64:
			v = object{"doubleValue": a.Value.AsFloat64()}
		default:
			v = object{"stringValue": a.Value.String()}
		}
		out[i] = object{"key": string(a.Key), "value": v}
	}
	return out
}
