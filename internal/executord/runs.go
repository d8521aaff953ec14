package executord

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executord/eventlog"
	"github.com/tholehq/thole/internal/executord/wire"
)

// runs is every run executord knows: those of this life and, from their logs,
// those of a former one that the dispatcher has not forgotten yet. A log's name
// is TURN_RUN.log.
type runs struct {
	dir string

	mu sync.Mutex // guards by
	by map[thole.TurnID]*run
}

func openRuns(dir string) (*runs, error) {
	rs := &runs{dir: dir, by: map[thole.TurnID]*run{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".log")
		if !ok {
			continue
		}
		turn, id, ok := strings.Cut(name, "_")
		if !ok {
			continue
		}
		r, err := reopen(filepath.Join(dir, e.Name()), thole.TurnID(turn), thole.TurnID(id))
		if err != nil {
			return nil, err
		}
		rs.by[thole.TurnID(id)] = r
	}
	return rs, nil
}

// reopen folds a former life's log into a run that is over: ended if its end was
// recorded, lost if the provider died with the old executord.
func reopen(path string, turn, id thole.TurnID) (*run, error) {
	log, err := eventlog.Open(path)
	if err != nil {
		return nil, err
	}
	r := &run{log: log, cancel: func() {}, done: make(chan struct{}), info: wire.Run{ID: id, For: turn, State: wire.RunLost, Receipts: true}}
	close(r.done)
	log.Seal()
	for after := uint64(0); ; {
		recs, err := log.Read(context.Background(), after)
		if err != nil {
			break // io.EOF: the log is sealed
		}
		for _, rec := range recs {
			after = rec.Cursor
			ev, err := wire.ReadEvent(rec.Data)
			if err != nil {
				continue
			}
			r.note(&ev)
			if ev.Kind == event.TurnEnded {
				r.info.State = wire.RunEnded
			}
		}
	}
	if r.info.State != wire.RunEnded {
		r.info.State = wire.RunLost
	}
	return r, nil
}

// begin registers a run and its empty log, or returns the one that is there.
func (rs *runs) begin(req wire.RunRequest, s *Server) (*run, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r, ok := rs.by[req.Turn.ID]; ok {
		return r, nil
	}
	for _, other := range rs.by {
		if info := other.snapshot(); info.Thread == req.Thread && (info.State == wire.RunRunning || info.State == wire.RunWaiting) {
			return nil, thole.Errorf(thole.CodeBusy, "run %s of turn %s is still going", info.ID, info.For)
		}
	}
	log, err := eventlog.Create(filepath.Join(rs.dir, string(req.For)+"_"+string(req.Turn.ID)+".log"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{
		log: log, cancel: cancel, done: make(chan struct{}), steered: map[thole.MessageID]bool{}, receipts: map[thole.AskID]thole.EventID{},
		info: wire.Run{ID: req.Turn.ID, For: req.For, Thread: req.Thread, Provider: req.Provider, State: wire.RunRunning, Started: s.now(), Receipts: true},
	}
	if req.Turn.Reply != nil {
		r.receipts[req.Turn.Reply.Ask.ID] = req.Receipt
	}
	rs.by[req.Turn.ID] = r
	go r.drive(ctx, s, req)
	return r, nil
}

func (rs *runs) find(id thole.TurnID) (*run, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r, ok := rs.by[id]; ok {
		return r, nil
	}
	return nil, thole.Errorf(thole.CodeNotFound, "no run %s in this executor", id)
}

func (rs *runs) list() []wire.Run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	out := make([]wire.Run, 0, len(rs.by))
	for _, r := range rs.by {
		out = append(out, r.snapshot())
	}
	return out
}

// forget drops a run that is over. A running one stays.
func (rs *runs) forget(r *run) error {
	select {
	case <-r.done:
	default:
		return thole.Errorf(thole.CodeBusy, "run %s is still going", r.snapshot().ID)
	}
	rs.mu.Lock()
	delete(rs.by, r.snapshot().ID)
	rs.mu.Unlock()
	return r.log.Remove()
}

func (rs *runs) each(fn func(*run)) {
	rs.mu.Lock()
	all := make([]*run, 0, len(rs.by))
	for _, r := range rs.by {
		all = append(all, r)
	}
	rs.mu.Unlock()
	for _, r := range all {
		fn(r)
	}
}

func (rs *runs) stopAll() {
	rs.each(func(r *run) {
		r.mu.Lock()
		r.closing = true
		r.mu.Unlock()
		r.cancel()
	})
	rs.each(func(r *run) { <-r.done })
}

func (rs *runs) closeAll() (err error) {
	rs.each(func(r *run) { err = errors.Join(err, r.log.Close()) })
	return err
}
