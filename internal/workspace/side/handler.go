package side

import (
	"context"
	"net/http"

	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/workspace"
)

// Handler serves a Local to Remote, and its files to people. The code that mounts it
// checks who asks.
func Handler(l *Local) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /workspace/restore", jsonhttp.Handle(maxRequest, l.Restore))
	mux.Handle("POST /workspace/claim", jsonhttp.Handle(maxRequest, l.Claim))
	mux.Handle("POST /workspace/sync", jsonhttp.Handle(maxRequest, l.Scan))
	mux.Handle("POST /workspace/sync/push", jsonhttp.Handle(maxRequest, l.Push))
	mux.Handle("POST /workspace/link-agent-data", jsonhttp.Handle(maxRequest, func(ctx context.Context, _ struct{}) (struct{}, error) { return struct{}{}, l.Link(ctx) }))
	mux.Handle("POST /workspace/validate", jsonhttp.Handle(maxRequest, func(ctx context.Context, req workspace.ValidateRequest) (struct{}, error) {
		return struct{}{}, l.Validate(ctx, req)
	}))
	mux.Handle("POST /workspace/compare", jsonhttp.Handle(maxRequest, func(ctx context.Context, req workspace.CompareRequest) (struct{}, error) {
		return struct{}{}, l.Compare(ctx, req)
	}))
	mux.HandleFunc("GET /workspace/tree", l.serveTree)
	mux.HandleFunc("GET /workspace/file", l.serveFile)
	mux.HandleFunc("PUT /workspace/file", l.writeFile)
	mux.HandleFunc("GET /workspace/download", l.download)
	return mux
}

// maxRequest bounds a request; a restore of many plain objects carries a link for
// each.
const maxRequest = 256 << 20
