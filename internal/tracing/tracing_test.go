package tracing

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
)

func TestSpansReachTheCollectorAndOnlyWithOne(t *testing.T) {
	bodies := make(chan string, 8)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies <- r.URL.Path + " " + string(b)
	}))
	defer collector.Close()
	if stop, err := Start(); err != nil || stop(t.Context()) != nil || Enabled() {
		t.Fatal("tracing without a collector")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	stop, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	_, end := Span(t.Context(), "turn.run", attribute.String("thread", "t1"), attribute.Int("n", 7))
	end(errors.New("it broke"))
	if err := stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	path, body, _ := strings.Cut(<-bodies, " ")
	var got struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct {
					TraceID, SpanID, Name string
					StartTimeUnixNano     string
					Status                struct {
						Code    int
						Message string
					}
					Attributes []struct {
						Key   string
						Value struct{ StringValue, IntValue string }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || path != "/v1/traces" {
		t.Fatalf("the collector got %s: %v %s", path, err, body)
	}
	span := got.ResourceSpans[0].ScopeSpans[0].Spans[0]
	if span.Name != "turn.run" || len(span.TraceID) != 32 || len(span.SpanID) != 16 || span.StartTimeUnixNano == "" || span.Status.Code != 2 ||
		span.Status.Message != "it broke" || span.Attributes[0].Value.StringValue != "t1" || span.Attributes[1].Value.IntValue != "7" {
		t.Errorf("the collector got %s", body)
	}
}
