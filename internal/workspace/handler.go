package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
)

// Handler serves a Local to Remote, and its files to people. Whoever mounts it
// checks who asks.
func Handler(l *Local) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /workspace/restore", handle(l.Restore))
	mux.Handle("POST /workspace/claim", handle(l.Claim))
	mux.Handle("POST /workspace/sync", handle(l.Scan))
	mux.Handle("POST /workspace/sync/push", handle(l.Push))
	mux.Handle("POST /workspace/link-agent-data", handle(func(ctx context.Context, _ struct{}) (struct{}, error) { return struct{}{}, l.Link(ctx) }))
	mux.Handle("POST /workspace/validate", handle(func(ctx context.Context, req ValidateRequest) (struct{}, error) {
		return struct{}{}, l.Validate(ctx, req)
	}))
	mux.Handle("POST /workspace/compare", handle(func(ctx context.Context, req CompareRequest) (struct{}, error) {
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

func handle[In, Out any](fn func(context.Context, In) (Out, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := strictjson.ReadKnown(http.MaxBytesReader(w, r.Body, maxRequest), &in); err != nil {
			writeError(w, thole.Errorf(thole.CodeInvalid, "decode request: %w", err))
			return
		}
		out, err := fn(r.Context(), in)
		if err != nil {
			writeError(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	})
}

// writeError answers in executord's form of errors.
func writeError(w http.ResponseWriter, err error) {
	code := thole.CodeOf(err)
	if errors.Is(err, context.Canceled) {
		code = thole.CodeUnavailable
	}
	status := map[thole.Code]int{
		thole.CodeInvalid: 400, thole.CodeForbidden: 403, thole.CodeNotFound: 404, thole.CodeConflict: 409,
		thole.CodeUnsupported: 422, thole.CodeUnavailable: 503,
	}[code]
	if status == 0 {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"code": code, "message": err.Error(), "hint": thole.HintOf(err)})
}
