package tracing

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestSpansReachTheCollectorAndOnlyWithOne(t *testing.T) {
	bodies := make(chan string, 8)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies <- r.URL.Path + " " + string(b)
	}))
	defer collector.Close()
	if stop, err := Start(t.Context()); err != nil || stop(t.Context()) != nil || Enabled() {
		t.Fatal("tracing without a collector")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	stop, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, end := Span(t.Context(), "turn.run")
	end(errors.New("it broke"))
	if err := stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := <-bodies; !strings.HasPrefix(got, "/v1/traces ") || !strings.Contains(got, "turn.run") || !strings.Contains(got, "it broke") {
		t.Fatalf("the collector got %q", got)
	}
}
