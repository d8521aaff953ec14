package appserver

import (
	"context"
	"encoding/json"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

func (s *Server) registerHistory() {
	inThread(on(s, "thread/read", s.threadRead), serial.Shared, func(p *app.ThreadReadParams) string { return p.ThreadID })
	on(s, "thread/list", s.threadList)
	on(s, "thread/search", s.threadSearch)
	on(s, "thread/loaded/list", s.loadedList)
	on(s, "thread/turns/list", s.turnsList)
	on(s, "thread/items/list", s.itemsList)
}

// maxFull bounds how many turns of a history are returned at once where a client asks
// for all of it: the newest ones. Paging has no such bound.
const maxFull = 200

func (s *Server) threadRead(ctx context.Context, c *conn, p *app.ThreadReadParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	t, err := s.cfg.Threads.Get(ctx, c.who(), id)
	if err != nil {
		return answer{}, err
	}
	out := app.ThreadResult{Thread: s.thread(t)}
	if p.IncludeTurns {
		if out.Thread.Turns, err = s.fullTurns(ctx, c, id); err != nil {
			return answer{}, err
		}
	}
	return answer{result: out}, nil
}

// fullTurns is the newest turns with their items, oldest first.
func (s *Server) fullTurns(ctx context.Context, c *conn, id thole.ThreadID) ([]app.Turn, error) {
	limit, desc := maxFull, "desc"
	page, err := s.turnsPage(ctx, c, id, app.PageParams{Limit: &limit, SortDirection: &desc}, app.ItemsFull)
	if err != nil {
		return nil, err
	}
	turns := page.Data
	for i, j := 0, len(turns)-1; i < j; i, j = i+1, j-1 {
		turns[i], turns[j] = turns[j], turns[i]
	}
	return turns, nil
}

func pageParams(p app.PageParams, desc bool) (thread.PageParams, error) {
	out := thread.PageParams{Cursor: str(p.Cursor), Desc: desc}
	if p.Limit != nil {
		if *p.Limit < 0 {
			return out, thole.Errorf(thole.CodeInvalid, "limit must not be negative")
		}
		out.Limit = *p.Limit
	}
	switch str(p.SortDirection) {
	case "":
	case "asc":
		out.Desc = false
	case "desc":
		out.Desc = true
	default:
		return out, invalid("unknown variant `%s`, expected `asc` or `desc`", *p.SortDirection)
	}
	return out, nil
}

func cursors[T any](p thread.Page[T]) app.Page {
	return app.Page{NextCursor: ptr(p.Next), BackwardsCursor: ptr(p.Back)}
}

func (s *Server) turnsList(ctx context.Context, c *conn, p *app.TurnsListParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	view := str(p.ItemsView)
	switch view {
	case "":
		view = app.ItemsSummary
	case app.ItemsNotLoaded, app.ItemsSummary, app.ItemsFull:
	default:
		return answer{}, invalid("unknown variant `%s`, expected one of `notLoaded`, `summary`, `full`", view)
	}
	return result(s.turnsPage(ctx, c, id, p.PageParams, view))
}

func (s *Server) turnsPage(ctx context.Context, c *conn, id thole.ThreadID, p app.PageParams, view string) (app.TurnsPage, error) {
	pp, err := pageParams(p, true)
	if err != nil {
		return app.TurnsPage{}, err
	}
	page, err := s.cfg.Threads.Turns(ctx, c.who(), id, pp)
	if err != nil {
		return app.TurnsPage{}, err
	}
	out := app.TurnsPage{Data: make([]app.Turn, 0, len(page.Items)), Page: cursors(page)}
	for _, t := range page.Items {
		w := turn(t)
		if view == app.ItemsSummary || view == app.ItemsFull {
			if w.Items, err = s.turnItems(ctx, c, id, t.ID, view); err != nil {
				return app.TurnsPage{}, err
			}
			w.ItemsView = view
		}
		out.Data = append(out.Data, w)
	}
	return out, nil
}

// turnItems is all items of a turn, or in a summary what was said: the first
// message of the user and the last of the agent.
func (s *Server) turnItems(ctx context.Context, c *conn, id thole.ThreadID, turn thole.TurnID, view string) ([]app.Item, error) {
	items, err := s.walkItems(ctx, c, id, turn)
	if err != nil || view == app.ItemsFull {
		return items, err
	}
	summary := []app.Item{}
	for _, it := range items {
		if it.Type == app.ItemUserMessage {
			summary = append(summary, it)
			break
		}
	}
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].Type == app.ItemAgentMessage {
			summary = append(summary, items[i])
			break
		}
	}
	return summary, nil
}

// maxTurnItems bounds the items of one turn that are returned inside the turn.
const maxTurnItems = 5000

func (s *Server) walkItems(ctx context.Context, c *conn, id thole.ThreadID, turn thole.TurnID) ([]app.Item, error) {
	items := []app.Item{}
	for p := (thread.PageParams{Limit: 500}); ; {
		page, err := s.cfg.Threads.Items(ctx, c.who(), id, turn, p)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Items {
			items = append(items, item(r.Item))
		}
		if page.Next == "" || len(items) >= maxTurnItems {
			return items, nil
		}
		p.Cursor = page.Next
	}
}

// itemsList returns items that are complete. What is in flight a subscriber receives
// as started and growing; returning it here too would show it twice.
func (s *Server) itemsList(ctx context.Context, c *conn, p *app.ItemsListParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	pp, err := pageParams(p.PageParams, false)
	if err != nil {
		return answer{}, err
	}
	page, err := s.cfg.Threads.Items(ctx, c.who(), id, thole.TurnID(str(p.TurnID)), pp)
	if err != nil {
		return answer{}, err
	}
	out := app.ItemsPage{Data: make([]app.ItemEntry, 0, len(page.Items)), Page: cursors(page)}
	for _, r := range page.Items {
		if !r.Open {
			out.Data = append(out.Data, entry(r))
		}
	}
	return answer{result: out}, nil
}

// maxDirs bounds the directories of one list.
const maxDirs = 1000

func (s *Server) filter(p *app.ThreadListParams) (thread.Filter, error) {
	pp, err := pageParams(p.PageParams, true)
	if err != nil {
		return thread.Filter{}, err
	}
	f := thread.Filter{PageParams: pp, Search: str(p.SearchTerm), Archived: p.Archived != nil && *p.Archived, Sort: "created"}
	switch str(p.SortKey) {
	case "", "created_at":
	case "updated_at", "recency_at":
		f.Sort = "updated"
	default:
		return f, invalid("unknown variant `%s`, expected one of `created_at`, `updated_at`, `recency_at`", *p.SortKey)
	}
	var known []string
	for _, info := range s.cfg.Providers() {
		known = append(known, info.Name)
	}
	for _, name := range p.ModelProviders {
		for _, k := range known {
			if k == name {
				f.Providers = append(f.Providers, name)
			}
		}
	}
	if len(p.Cwd) > 0 && string(p.Cwd) != "null" {
		dir := ""
		if strictjson.Unmarshal(p.Cwd, &dir) != nil && (strictjson.Unmarshal(p.Cwd, &f.Dirs) != nil || len(f.Dirs) > maxDirs) {
			return f, invalid("cwd is neither a directory nor up to %d", maxDirs)
		}
		if dir != "" {
			f.Dirs = []string{dir}
		}
	}
	return f, nil
}

// ours reports whether threads of this server are among the wanted kinds. All of
// them are interactive, whatever client made them.
func ours(kinds []string) bool {
	if len(kinds) == 0 {
		return true
	}
	for _, k := range kinds {
		if k == "cli" || k == "vscode" || k == "appServer" {
			return true
		}
	}
	return false
}

func (s *Server) threadList(ctx context.Context, c *conn, p *app.ThreadListParams) (answer, error) {
	out := app.ThreadListResult{Data: []app.Thread{}, ReadStates: map[string]json.RawMessage{}}
	f, err := s.filter(p)
	if err != nil {
		return answer{}, err
	}
	if !ours(p.SourceKinds) {
		return answer{result: out}, nil
	}
	page, err := s.cfg.Threads.List(ctx, c.who(), f)
	if err != nil {
		return answer{}, err
	}
	for _, t := range page.Items {
		out.Data = append(out.Data, s.thread(t))
	}
	out.Page = cursors(page)
	return answer{result: out}, nil
}

func (s *Server) threadSearch(ctx context.Context, c *conn, p *app.ThreadListParams) (answer, error) {
	if str(p.SearchTerm) == "" {
		return answer{}, invalid("missing field `searchTerm`")
	}
	f, err := s.filter(p)
	if err != nil {
		return answer{}, err
	}
	out := app.ThreadSearchResult{Data: []app.ThreadMatch{}}
	page, err := s.cfg.Threads.List(ctx, c.who(), f)
	if err != nil {
		return answer{}, err
	}
	for _, t := range page.Items {
		out.Data = append(out.Data, app.ThreadMatch{Thread: s.thread(t), Snippet: snippet(t, f.Search)})
	}
	out.Page = cursors(page)
	return answer{result: out}, nil
}

// snippet is what a human recognises the match by: the name or preview that holds
// the text, else the preview.
func snippet(t fold.Thread, term string) string {
	if strings.Contains(strings.ToLower(t.Name), strings.ToLower(term)) {
		return t.Name
	}
	return t.Preview
}

func (s *Server) loadedList(ctx context.Context, c *conn, _ *app.Empty) (answer, error) {
	ids, err := s.cfg.Threads.Loaded(ctx, c.who())
	out := app.LoadedListResult{Data: make([]string, 0, len(ids))}
	for _, id := range ids {
		out.Data = append(out.Data, string(id))
	}
	return result(out, err)
}
