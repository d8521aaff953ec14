package httpapi

import (
	"context"
	"io"
	"net/http"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/transcript"
)

// outputPage is a part of a command's output.
type outputPage struct {
	Offset  int64  `json:"offset" doc:"where text begins, in bytes; after the one that was asked for where nothing is kept of what is between"`
	Text    string `json:"text"`
	Next    int64  `json:"next,omitempty" doc:"offset to read on at; absent at the end"`
	Total   int64  `json:"total" doc:"bytes of the whole output, so far"`
	Skipped int64  `json:"skipped,omitempty" doc:"bytes that are not kept: those between the first MiB and the end"`
	Open    bool   `json:"open" doc:"the command runs"`
}

func (s *Server) exportRoutes() {
	s.serve("GET /sessions/{session_id}/export", page{
		summary: "The whole session as Markdown or JSON, as a file", query: []string{"format"}, status: 200, media: "text/markdown", shapes: []any{""}, also: "application/json",
	}, func(w http.ResponseWriter, r *http.Request) {
		transcript.Serve(w, r, s.cfg.Threads, actorOf(r.Context()), thole.ThreadID(r.PathValue("session_id")), func(err error) { s.refuse(w, r, err) })
	})
	op(s, "GET", "/sessions/{session_id}/items/{item_id}/output", "A part of what a command wrote", 200, func(ctx context.Context, in *struct {
		SessionID
		Item   string `path:"item_id" maxLength:"200"`
		Offset int64  `query:"offset" minimum:"0"`
		Limit  int    `query:"limit" minimum:"0" maximum:"1048576" doc:"bytes, 65536 when absent"`
	}) (*body[outputPage], error) {
		limit := in.Limit
		if limit == 0 {
			limit = 64 << 10
		}
		o, err := s.cfg.Threads.Output(ctx, actorOf(ctx), in.thread(), thole.ItemID(in.Item), in.Offset, limit)
		return answer(outputPage{o.Offset, o.Text, o.Next, o.Total, o.Skipped, o.Open}, err)
	})
	s.serve("GET /sessions/{session_id}/items/{item_id}/output/text", page{
		summary: "All that is kept of what a command wrote, as text", status: 200, media: "text/plain", shapes: []any{""},
	}, s.outputText)
}

func (s *Server) outputText(w http.ResponseWriter, r *http.Request) {
	id, item := thole.ThreadID(r.PathValue("session_id")), thole.ItemID(r.PathValue("item_id"))
	for offset := int64(0); ; {
		o, err := s.cfg.Threads.Output(r.Context(), actorOf(r.Context()), id, item, offset, 0)
		if err != nil && offset > 0 {
			panic(http.ErrAbortHandler) // half an output must not look like a whole one
		}
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		if offset == 0 {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("Content-Disposition", `attachment; filename="output.txt"`)
		}
		_, _ = io.WriteString(w, o.Text)
		if o.Next == 0 {
			return
		}
		if gap := o.Next - o.Offset - int64(len(o.Text)); gap > 0 {
			_, _ = io.WriteString(w, transcript.Gap(gap))
		}
		offset = o.Next
	}
}
