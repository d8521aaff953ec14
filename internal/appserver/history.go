package appserver

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/jsonrpc"
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
	out := app.ThreadReadResult{ThreadResult: app.ThreadResult{Thread: s.thread(t)}}
	if !p.IncludeTurns {
		return answer{result: out}, nil
	}
	return answer{rest: func(ctx context.Context) (any, []jsonrpc.Frame, error) {
		var err error
		out.Thread.Turns, err = s.fullTurns(ctx, c, id, nil)
		return out, nil, err
	}}, nil
}

// fullTurns is the newest turns with their items, oldest first.
func (s *Server) fullTurns(ctx context.Context, c *conn, id thole.ThreadID, at *thread.Snapshot) ([]app.Turn, error) {
	limit, desc := maxFull, "desc"
	page, err := s.turnsPage(ctx, c, id, app.PageParams{Limit: &limit, SortDirection: &desc}, app.ItemsFull, at)
	slices.Reverse(page.Data)
	return page.Data, err
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
	return result(s.turnsPage(ctx, c, id, p.PageParams, str(p.ItemsView), nil))
}

// turnsPage is a page of turns, read in a number of queries that does not depend on how
// many they are. With a snapshot it has the turns as they were then: a turn that is over
// does not change, the open one is in the snapshot, and later ones are left out.
func (s *Server) turnsPage(ctx context.Context, c *conn, id thole.ThreadID, p app.PageParams, view string, at *thread.Snapshot) (app.TurnsPage, error) {
	switch view {
	case "":
		view = app.ItemsSummary
	case app.ItemsNotLoaded, app.ItemsSummary, app.ItemsFull:
	default:
		return app.TurnsPage{}, invalid("unknown variant `%s`, expected one of `notLoaded`, `summary`, `full`", view)
	}
	pp, err := pageParams(p, true)
	if err != nil {
		return app.TurnsPage{}, err
	}
	if at != nil && pp.Desc {
		pp.Cursor = thread.CursorAt(uint64(at.Thread.Turns) + 1)
	}
	th, err := s.cfg.Threads.Get(ctx, c.who(), id)
	if err != nil {
		return app.TurnsPage{}, err
	}
	page, err := s.cfg.Threads.Turns(ctx, c.who(), id, pp)
	if err != nil {
		return app.TurnsPage{}, err
	}
	out := app.TurnsPage{Data: make([]app.Turn, 0, len(page.Items)), Page: cursors(page)}
	var over []thole.TurnID
	for _, t := range page.Items {
		if at == nil || at.Open == nil || at.Open.ID != t.ID {
			over = append(over, t.ID)
		}
	}
	var items map[thole.TurnID][]fold.ItemRecord
	if view != app.ItemsNotLoaded {
		if items, err = s.cfg.Threads.TurnItems(ctx, c.who(), id, over, view == app.ItemsSummary); err != nil {
			return app.TurnsPage{}, err
		}
	}
	for _, t := range page.Items {
		switch {
		case at != nil && t.Number > at.Thread.Turns: // it began after the snapshot
		case at != nil && at.Open != nil && at.Open.ID == t.ID:
			out.Data = append(out.Data, turnWith(c, *at.Open, complete(at), true, view, th.WorkDir()))
		default:
			list, read := items[t.ID]
			out.Data = append(out.Data, turnWith(c, t, list, read, view, th.WorkDir()))
		}
	}
	return out, nil
}

// complete is the items of a snapshot's open turn that are complete: its reader is sent
// the others as started, and would show an item twice that is in both.
func complete(at *thread.Snapshot) []fold.ItemRecord {
	var out []fold.ItemRecord
	for _, r := range at.Fold.Items {
		if !r.Open {
			out = append(out, r)
		}
	}
	return out
}

// turnWith is a turn with its items as a view wants them. A turn whose items were not
// read says so.
func turnWith(c *conn, t fold.Turn, list []fold.ItemRecord, read bool, view, dir string) app.Turn {
	w := turn(t)
	if !c.peer().extended {
		w.Error = bareError(w.Error)
	}
	if view == app.ItemsNotLoaded || !read {
		return w
	}
	w.ItemsView = view
	items := make([]app.Item, 0, len(list))
	for _, r := range list {
		if !r.Open || shows(r.Item) {
			items = append(items, item(r.Item, dir))
		}
	}
	if w.Items = forPeer(c.peer(), items); view == app.ItemsSummary {
		w.Items = summary(items)
	}
	return w
}

// summary is what was said: the first message of the user and the last of the agent.
func summary(items []app.Item) []app.Item {
	out := []app.Item{}
	for _, it := range items {
		if it.Type == app.ItemUserMessage {
			out = append(out, it)
			break
		}
	}
	for _, it := range slices.Backward(items) {
		if it.Type == app.ItemAgentMessage {
			return append(out, it)
		}
	}
	return out
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
	t, err := s.cfg.Threads.Get(ctx, c.who(), id)
	if err != nil {
		return answer{}, err
	}
	out := app.ItemsPage{Data: make([]app.ItemEntry, 0, len(page.Items)), Page: cursors(page)}
	for _, r := range page.Items {
		if !r.Open {
			w := entry(r, t.WorkDir())
			if !c.peer().extended {
				w.Item.Thole = nil
			}
			out.Data = append(out.Data, w)
		}
	}
	return answer{result: out}, nil
}

// maxExcluded bounds the threads that one list leaves out.
const maxExcluded = 100

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
	case "section_position":
		if len(p.SectionID) == 0 {
			return f, thole.Errorf(thole.CodeInvalid, "section-position sorting requires a section filter")
		}
	default:
		return f, invalid("unknown variant `%s`, expected one of `created_at`, `updated_at`, `recency_at`, `section_position`", *p.SortKey)
	}
	if len(p.Excluded) > maxExcluded {
		return f, invalid("excludedThreadIds has more than %d entries", maxExcluded)
	}
	for _, name := range p.Excluded {
		id, err := threadID(name)
		if err != nil {
			return f, err
		}
		f.Except = append(f.Except, id)
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
	f.Pinned, err = inSection(p.SectionID)
	return f, err
}

// ours reports whether threads of this server are among the wanted kinds. All of
// them are interactive, whatever client made them. Kinds that do not exist are refused.
func ours(kinds []string) (bool, error) {
	found := len(kinds) == 0
	for _, k := range kinds {
		switch k {
		case "cli", "vscode", "appServer":
			found = true
		case "exec", "subAgent", "subAgentReview", "subAgentCompact", "subAgentThreadSpawn", "subAgentOther", "unknown":
		default:
			return false, invalid("unknown variant `%s`, expected one of `cli`, `vscode`, `exec`, `appServer`, `subAgent`, `subAgentReview`, `subAgentCompact`, `subAgentThreadSpawn`, `subAgentOther`, `unknown`", k)
		}
	}
	return found, nil
}

func (s *Server) threadList(ctx context.Context, c *conn, p *app.ThreadListParams) (answer, error) {
	out := app.ThreadListResult{Data: []app.Thread{}, ReadStates: map[string]json.RawMessage{}}
	f, err := s.filter(p)
	if err != nil {
		return answer{}, err
	}
	if any, err := ours(p.SourceKinds); err != nil || !any {
		return result(out, err)
	}
	if s.nowhere(p) {
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
	if any, err := ours(p.SourceKinds); err != nil || !any {
		return result(out, err)
	}
	if s.nowhere(p) {
		return answer{result: out}, nil
	}
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

func (s *Server) loadedList(ctx context.Context, c *conn, p *app.ListParams) (answer, error) {
	ids, err := s.cfg.Threads.Loaded(ctx, c.who())
	if err != nil {
		return answer{}, err
	}
	slices.Sort(ids)
	out := app.LoadedListResult{Data: make([]string, 0, len(ids))}
	if ids, out.NextCursor, err = paged(ids, *p); err != nil {
		return answer{}, err
	}
	for _, id := range ids {
		out.Data = append(out.Data, string(id))
	}
	return answer{result: out}, nil
}

// paged is the wanted part of a list that is made again for each request. The cursor is
// the number of entries before it.
func paged[T any](all []T, p app.ListParams) ([]T, *string, error) {
	from := 0
	if p.Cursor != nil {
		n, err := strconv.Atoi(*p.Cursor)
		if err != nil || n < 0 {
			return nil, nil, thole.Errorf(thole.CodeInvalid, "invalid cursor: %s", *p.Cursor)
		}
		from = min(n, len(all))
	}
	if p.Limit != nil && *p.Limit < 0 {
		return nil, nil, thole.Errorf(thole.CodeInvalid, "limit must not be negative")
	}
	if p.Limit == nil || *p.Limit == 0 || from+*p.Limit >= len(all) {
		return all[from:], nil, nil
	}
	to := from + *p.Limit
	return all[from:to], new(strconv.Itoa(to)), nil
}
