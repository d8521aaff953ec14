package httpapi

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/thread"
)

func (s *Server) searchRoutes() {
	op(s, "GET", "/search", "Find messages by a part of their text, those of the newest run first, with the place in each", 200, func(ctx context.Context, in *struct {
		Query    string `query:"query" required:"true" minLength:"1" maxLength:"500" doc:"in any case; the first 8 KB of a message are searched"`
		Session  string `query:"session_id" format:"uuid" doc:"only in this session, archived or not"`
		Archived bool   `query:"archived" doc:"in archived sessions instead of the others"`
		Cursor   string `query:"cursor" doc:"from a list's next"`
		Limit    int    `query:"limit" minimum:"0" maximum:"200" doc:"50 when absent"`
	}) (*body[list[view.SearchHit]], error) {
		page, err := s.cfg.Threads.Search(ctx, actorOf(ctx), thread.Search{
			Text: in.Query, Thread: thole.ThreadID(in.Session), Archived: in.Archived, PageParams: PageIn{Cursor: in.Cursor, Limit: in.Limit}.params(),
		})
		return answer(paged(page, searchHit), err)
	})
}

func searchHit(h thread.Hit) view.SearchHit {
	title := h.Name
	if title == "" {
		title = fold.Title(h.Preview)
	}
	return view.OfHit(h.Item, h.Asked, h.Steer, view.Place{Before: h.Before, Match: h.Match, After: h.After},
		view.SearchSession{ID: string(h.Thread), Title: title, Provider: h.Provider, Archived: h.Archived})
}
