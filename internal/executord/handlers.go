package executord

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/provider"
)

func (s *Server) run(_ context.Context, req wire.RunRequest) (wire.Run, error) {
	if !thole.ValidUUID(string(req.Turn.ID)) || !thole.ValidUUID(string(req.For)) || req.Thread == "" {
		return wire.Run{}, thole.Errorf(thole.CodeInvalid, "run, turn and thread ids are required")
	}
	if err := s.narrow(req.Session.Network); err != nil {
		return wire.Run{}, err
	}
	r, err := s.runs.begin(req, s)
	if err != nil {
		return wire.Run{}, err
	}
	return r.snapshot(), nil
}

func (s *Server) cancel(ctx context.Context, req wire.CancelRequest) (wire.Run, error) {
	r, err := s.runs.find(req.Run)
	if err != nil {
		return wire.Run{}, err
	}
	r.mu.Lock()
	session := r.session
	r.stopped = true
	r.mu.Unlock()
	if req.Kill || session == nil {
		r.cancel()
		return r.snapshot(), nil
	}
	err = session.Stop(ctx)
	if errors.Is(err, provider.ErrNoTurn) && r.current() != nil {
		// The session is open and its agent has not begun the turn, or has just ended it.
		// Success here would lose the stop of a turn that is about to begin.
		return wire.Run{}, thole.Errorf(thole.CodeUnavailable, "stop run %s: %w", req.Run, err)
	}
	if err != nil && !errors.Is(err, provider.ErrNoTurn) {
		r.cancel()
	}
	return r.snapshot(), nil
}

func (s *Server) steer(ctx context.Context, req wire.SteerRequest) (wire.Run, error) {
	r, session, err := s.live(req.Run)
	if err != nil {
		return wire.Run{}, err
	}
	input, err := layFiles(s.cfg.Dirs.Workspace, req.Input)
	if err != nil {
		return wire.Run{}, err
	}
	r.mu.Lock()
	repeat := r.steered[req.ID]
	r.steered[req.ID] = true
	r.mu.Unlock()
	if repeat {
		return r.snapshot(), nil
	}
	if err := session.Steer(ctx, input, req.ClientID); err != nil {
		r.mu.Lock()
		delete(r.steered, req.ID)
		r.mu.Unlock()
		return wire.Run{}, portError(err)
	}
	return r.snapshot(), nil
}

func (s *Server) reply(ctx context.Context, req wire.ReplyRequest) (wire.Run, error) {
	r, session, err := s.live(req.Run)
	if err != nil {
		return wire.Run{}, err
	}
	if req.Defer {
		err = session.Defer(ctx, req.Ask)
	} else {
		err = r.answer(ctx, session, req)
	}
	if err != nil {
		return wire.Run{}, portError(err)
	}
	return r.snapshot(), nil
}

// answer gives the session one answer to an ask and remembers with which receipt
// it came: a reader of the log sees whose it was. A repeat is harmless.
func (r *run) answer(ctx context.Context, session provider.Session, req wire.ReplyRequest) error {
	r.replies.Lock()
	defer r.replies.Unlock()
	r.mu.Lock()
	first, given := r.receipts[req.Ask]
	if !given {
		r.receipts[req.Ask] = req.Receipt // before the session reports it
	}
	r.mu.Unlock()
	if given && first != req.Receipt {
		return provider.ErrSettled
	}
	err := session.Answer(ctx, req.Ask, req.Answer)
	refused := errors.Is(err, provider.ErrSettled) || errors.Is(err, provider.ErrNoTurn) || errors.Is(err, provider.ErrUnsupported)
	switch {
	case given && first != "" && errors.Is(err, provider.ErrSettled):
		return nil // by the first of its kind
	case !given && err != nil && (refused || req.Receipt == ""): // else it may have come through
		r.mu.Lock()
		delete(r.receipts, req.Ask)
		r.mu.Unlock()
	}
	return err
}

func (s *Server) live(id thole.TurnID) (*run, provider.Session, error) {
	r, err := s.runs.find(id)
	if err != nil {
		return nil, nil, err
	}
	session := r.current()
	if session == nil {
		return nil, nil, thole.Errorf(thole.CodeConflict, "run %s is not going", id)
	}
	return r, session, nil
}

// portError gives the port's errors their classes.
func portError(err error) error {
	switch {
	case errors.Is(err, provider.ErrUnsupported):
		return thole.Errorf(thole.CodeUnsupported, "%w", err)
	case errors.Is(err, provider.ErrNoTurn), errors.Is(err, provider.ErrSettled):
		return thole.Errorf(thole.CodeConflict, "%w", err)
	}
	return err
}

func (s *Server) ack(_ context.Context, req wire.AckRequest) (struct{}, error) {
	r, err := s.runs.find(req.Run)
	if err != nil {
		return struct{}{}, err
	}
	r.log.Ack(req.Cursor)
	if req.Forget {
		return struct{}{}, s.runs.forget(r)
	}
	return struct{}{}, nil
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	list := s.runs.list()
	slices.SortFunc(list, func(a, b wire.Run) int { return strings.Compare(string(a.ID), string(b.ID)) })
	st := wire.Status{Boot: s.boot, Version: s.cfg.Version, Started: s.started, Runs: list, Terminals: s.terminals.Open(), Commands: s.cfg.Commands(), Gateway: s.way != nil, Revision: wire.Revision}
	st.Jobs, st.JobsRunning = s.jobs.ids()
	jsonhttp.Write(w, http.StatusOK, st)
}

// runAfter finds the run a request is for and the cursor after which it reads.
func (s *Server) runAfter(req *http.Request, cursor string) (*run, uint64, error) {
	r, err := s.runs.find(thole.TurnID(req.PathValue("run")))
	if err != nil {
		return nil, 0, err
	}
	after, err := strconv.ParseUint(cursor, 10, 64)
	if err != nil {
		return nil, 0, thole.Errorf(thole.CodeInvalid, "invalid cursor %q", cursor)
	}
	if end, _ := r.log.End(); after > end {
		return nil, 0, thole.Errorf(thole.CodeConflict, "cursor %d is beyond the end of the log, %d", after, end)
	}
	return r, after, nil
}

// events streams a run's log following ?after=N as one JSON object a line, until
// the run is over or the client goes.
func (s *Server) events(w http.ResponseWriter, req *http.Request) {
	r, after, err := s.runAfter(req, req.URL.Query().Get("after"))
	if err != nil {
		jsonhttp.Error(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	flush := http.NewResponseController(w)
	_ = flush.SetWriteDeadline(time.Time{})
	w.WriteHeader(http.StatusOK)
	if req.Method == http.MethodHead {
		return
	}
	_ = flush.Flush()
	for {
		recs, err := r.log.Read(req.Context(), after)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // a clean end would read as "the run is over"
		}
		for _, rec := range recs {
			after = rec.Cursor
			line := append(strconv.AppendUint([]byte(`{"cursor":`), rec.Cursor, 10), `,"event":`...)
			line = append(append(line, rec.Data...), "}\n"...)
			if _, err := w.Write(line); err != nil {
				return
			}
		}
		if err := flush.Flush(); err != nil {
			return
		}
	}
}

func (s *Server) pending(w http.ResponseWriter, _ *http.Request) {
	out := wire.Pending{Pending: []wire.PendingAsk{}}
	s.runs.each(func(r *run) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, a := range r.state.Asks {
			out.Pending = append(out.Pending, wire.PendingAsk{Run: r.info.ID, For: r.info.For, Ask: a.Ask})
		}
	})
	jsonhttp.Write(w, http.StatusOK, out)
}

// terminal gives a shell in the workspace.
func (s *Server) terminal(w http.ResponseWriter, r *http.Request) {
	if err := s.terminals.Serve(w, r); err != nil {
		jsonhttp.Error(w, err)
	}
}
