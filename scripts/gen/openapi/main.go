// Command openapi writes the OpenAPI document of the HTTP API. go generate runs
// it; make verify fails when its output is stale. The page's types are made from
// the document (scripts/web types).
package main

import (
	"bytes"
	"encoding/json"
	"log"
	"net/http"
	"os"

	"github.com/tholehq/thole/internal/platform/guard"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/platform/spend"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/thread"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: openapi FILE")
	}
	// A server that is never asked: it only says what it would answer.
	s, err := httpapi.New(httpapi.Config{
		Threads: struct{ thread.Service }{}, Index: &store.Index{}, Keys: &store.Idempotency{}, Sessions: &session.Manager{}, Spend: &spend.Service{},
		Guard: guard.New(guard.Config{}), Providers: func() []provider.Info { return nil }, Metrics: http.NotFoundHandler(), Version: "1",
	})
	if err != nil {
		log.Fatal(err)
	}
	b, err := s.Document()
	if err != nil {
		log.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", " "); err != nil {
		log.Fatal(err)
	}
	out.WriteByte('\n')
	if old, err := os.ReadFile(os.Args[1]); err == nil && bytes.Equal(old, out.Bytes()) {
		return
	}
	if err := os.WriteFile(os.Args[1], out.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
