package appserver

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/fuzzy"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/protocol/app"
)

// Bounds of a search.
const (
	maxMatches  = 50 // of one answer
	maxSearches = 16 // of one connection
	maxRoots    = 16
)

func (s *Server) registerSearch() {
	on(s, "fuzzyFileSearch", s.fileSearch)
	inProcess(on(s, "fuzzyFileSearch/sessionStart", s.searchStart), serial.Exclusive, func(p *app.FileSearchStartParams) string { return "search/" + p.SessionID })
	inProcess(on(s, "fuzzyFileSearch/sessionUpdate", s.searchUpdate), serial.Exclusive, func(p *app.FileSearchUpdateParams) string { return "search/" + p.SessionID })
	inProcess(on(s, "fuzzyFileSearch/sessionStop", s.searchStop), serial.Exclusive, func(p *app.FileSearchSession) string { return "search/" + p.SessionID })
}

// searches are what a connection looks for. Only names are kept of a search.
type searches struct {
	mu     sync.Mutex // guards what follows
	by     map[string][]candidate
	tokens map[string]context.CancelCauseFunc
}

// candidate is a file or directory that a query may mean.
type candidate struct {
	root, path string
	dir        bool
}

var errNewerSearch = thole.Errorf(thole.CodeConflict, "a newer search replaced this one")

// fileSearch answers one query. One that was replaced by a newer one finds nothing.
func (s *Server) fileSearch(ctx context.Context, c *conn, p *app.FileSearchParams) (answer, error) {
	q := fuzzy.Parse(p.Query)
	if q.Empty() {
		return answer{result: app.FileSearchResult{Files: []app.FileMatch{}}}, nil
	}
	ctx, release := c.space.searches.begin(ctx, str(p.CancellationToken))
	defer release()
	all, err := s.candidates(ctx, c, p.Roots, p.InThread)
	if errors.Is(context.Cause(ctx), errNewerSearch) {
		all, err = nil, nil
	}
	return result(app.FileSearchResult{Files: matches(q, all)}, err)
}

// begin ends the search with the same token.
func (ss *searches) begin(ctx context.Context, token string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if token == "" {
		return ctx, func() { cancel(nil) }
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if older := ss.tokens[token]; older != nil {
		older(errNewerSearch)
	}
	if ss.tokens == nil {
		ss.tokens = map[string]context.CancelCauseFunc{}
	}
	ss.tokens[token] = cancel
	return ctx, func() {
		ss.mu.Lock()
		defer ss.mu.Unlock()
		if context.Cause(ctx) == nil { // it is still the newest
			delete(ss.tokens, token)
		}
		cancel(nil)
	}
}

// searchStart lists what there is once; every query of the search is answered from that.
func (s *Server) searchStart(ctx context.Context, c *conn, p *app.FileSearchStartParams) (answer, error) {
	switch {
	case p.SessionID == "":
		return answer{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "sessionId must not be empty")
	case len(p.Roots) == 0:
		return answer{}, jsonrpc.Errorf(jsonrpc.CodeInternal, "failed to start fuzzy file search session: at least one search directory is required")
	}
	all, err := s.candidates(ctx, c, p.Roots, p.InThread)
	if err != nil {
		return answer{}, err
	}
	ss := &c.space.searches
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.by == nil {
		ss.by = map[string][]candidate{}
	}
	if _, again := ss.by[p.SessionID]; !again && len(ss.by) >= maxSearches {
		return answer{}, thole.Errorf(thole.CodeOverloaded, "%d searches are open on this connection already", maxSearches).WithHint("stop some of them")
	}
	ss.by[p.SessionID] = all
	return answer{result: app.Empty{}, after: s.searched(c, p.SessionID, "", nil)}, nil
}

func (s *Server) searchUpdate(_ context.Context, c *conn, p *app.FileSearchUpdateParams) (answer, error) {
	c.space.searches.mu.Lock()
	all, ok := c.space.searches.by[p.SessionID]
	c.space.searches.mu.Unlock()
	if !ok {
		return answer{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "fuzzy file search session not found: %s", p.SessionID)
	}
	return answer{result: app.Empty{}, after: s.searched(c, p.SessionID, p.Query, all)}, nil
}

func (s *Server) searchStop(_ context.Context, c *conn, p *app.FileSearchSession) (answer, error) {
	c.space.searches.mu.Lock()
	defer c.space.searches.mu.Unlock()
	delete(c.space.searches.by, p.SessionID)
	return answer{result: app.Empty{}}, nil
}

// searched are the notifications that a query causes.
func (s *Server) searched(c *conn, id, query string, all []candidate) []jsonrpc.Frame {
	now := thole.Millis(s.cfg.Now())
	return pick(c.peer(), []*frame{
		note("fuzzyFileSearch/sessionUpdated", now, app.FileSearchUpdated{SessionID: id, Query: query, Files: matches(fuzzy.Parse(query), all)}),
		note("fuzzyFileSearch/sessionCompleted", now, app.FileSearchSession{SessionID: id}),
	})
}

// matches are the best candidates, best first; of equal ones the shorter paths are taken.
func matches(q fuzzy.Query, all []candidate) []app.FileMatch {
	out := []app.FileMatch{}
	for _, cand := range all {
		score, at, ok := q.Match(cand.path)
		if !ok {
			continue
		}
		kind := "file"
		if cand.dir {
			kind = "directory"
		}
		out = append(out, app.FileMatch{Root: cand.root, Path: cand.path, MatchType: kind, FileName: path.Base(cand.path), Score: score, Indices: at})
	}
	slices.SortFunc(out, func(a, b app.FileMatch) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), len(a.Path)-len(b.Path), strings.Compare(a.Path, b.Path))
	})
	out = out[:min(len(out), maxMatches)]
	slices.SortStableFunc(out, func(a, b app.FileMatch) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Path, b.Path))
	})
	return out
}

// candidates lists what is below the roots.
func (s *Server) candidates(ctx context.Context, c *conn, roots []string, in app.InThread) ([]candidate, error) {
	if len(roots) > maxRoots {
		return nil, thole.Errorf(thole.CodeInvalid, "more than %d roots", maxRoots)
	}
	var all []candidate
	for _, root := range roots {
		at, err := s.where(ctx, c, root, in, false)
		if err != nil {
			return nil, err
		}
		list, err := s.below(ctx, c, at)
		if err != nil {
			return nil, err
		}
		for _, name := range list {
			all = append(all, candidate{root: root, path: name.Path, dir: name.Dir})
		}
	}
	return all, nil
}

// below lists a directory for as long as the connection lasts.
func (s *Server) below(ctx context.Context, c *conn, at place) ([]executorclient.Name, error) {
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	stop := context.AfterFunc(c.rpc.Context(), cancel)
	defer stop()
	names, err := executorclient.Names(ctx, func(ctx context.Context, on executorclient.Notify) (*executorclient.Exec, func(), error) {
		return s.cfg.Executors.Exec(ctx, c.who(), authz.BrowseFiles, at.thread, true, on)
	}, at.root, at.path)
	return names, fileError(err)
}
