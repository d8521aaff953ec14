package tracing

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

func TestSpansReachTheCollectorAndOnlyWithOne(t *testing.T) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"} {
		t.Setenv(name, "")
	}
	bodies := make(chan []byte, 8)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/v1/traces" && r.Header.Get("Api-Key") == "a b" {
			bodies <- b
		}
	}))
	defer collector.Close()
	if tr, err := Start(t.Context()); err != nil || tr != nil || tr.Stop(t.Context()) != nil {
		t.Fatal("tracing without a collector")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4318")
	if _, err := Start(t.Context()); err == nil || !strings.Contains(err.Error(), "is not a URL") {
		t.Fatalf("an endpoint that is none: %v", err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b")
	t.Setenv("OTEL_SDK_DISABLED", "true")
	if tr, err := Start(t.Context()); err != nil || tr != nil {
		t.Fatal("tracing though it is disabled")
	}
	t.Setenv("OTEL_SDK_DISABLED", "")
	tr, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := tr.Begin(t.Context(), Span{Name: "turn", Trace: "0190c1d2-7e3f-7abc-8def-0123456789ab", About: []string{"thread", "t1"}})
	_, endRun := tr.Begin(ctx, Span{Name: "run", Trace: "another"})
	endRun(errors.New("it broke"))
	end(nil)
	if err := tr.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	var got collect.ExportTraceServiceRequest
	if err := proto.Unmarshal(<-bodies, &got); err != nil {
		t.Fatal(err)
	}
	spans := got.ResourceSpans[0].ScopeSpans[0].Spans
	if len(spans) != 2 {
		t.Fatalf("the collector got %v", &got)
	}
	run, turn := spans[0], spans[1]
	want := ID("0190c1d27e3f7abc8def0123456789ab")
	if turn.Name != "turn" || string(turn.TraceId) != string(want[:]) || len(turn.ParentSpanId) != 0 || turn.Attributes[0].Value.GetStringValue() != "t1" {
		t.Errorf("the collector got %v", turn)
	}
	if run.Name != "run" || string(run.TraceId) != string(want[:]) || string(run.ParentSpanId) != string(turn.SpanId) || run.Status.Message != "it broke" {
		t.Errorf("the collector got %v", run)
	}
}

func TestIDs(t *testing.T) {
	if ID("a") == ID("b") || ID("a") != ID(strings.Repeat("a", 1)) || !ID("").IsValid() || ID(strings.Repeat("0", 32)) == ID("") {
		t.Error("ids do not follow their names")
	}
}
