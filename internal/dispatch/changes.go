package dispatch

import (
	"context"
	"strconv"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/provider"
)

// Changes keeps what threads' files were before and after their turns. A call may be
// repeated, and waits for others of the same thread. dir is where the files are on this
// machine, "" where they are not.
type Changes interface {
	// Before keeps the files as a turn finds them, where that is needed; After as it leaves
	// them.
	Before(ctx context.Context, th fold.Thread, turn int, dir string) error
	After(ctx context.Context, th fold.Thread, turn int, dir string) error
	// Undo puts the files back to what they were before a turn, as part of the turn as, and
	// returns what it did, in words.
	Undo(ctx context.Context, th fold.Thread, dir string, as, turn int) (string, error)
}

// before keeps the files before the agent runs. That they could not be kept is said in
// the turn, which runs all the same.
func (w *worker) before(ctx context.Context, p *place, th fold.Thread, t fold.Turn) {
	if w.cfg.Changes == nil || t.Run > 0 || t.Phase == thole.PhaseRunning || t.Phase == thole.PhaseWaitingHuman {
		return // or its run is there, and the files are not what they were
	}
	err := w.inTime(errSlowChanges, func(ctx context.Context) error {
		return w.cfg.Changes.Before(ctx, th, t.Number, w.target(th, p).Dir)
	})(ctx)
	if err == nil || ctx.Err() != nil {
		return
	}
	w.log.Warn("files were not kept before a turn", "turn", t.ID, "err", err)
	note := event.Event{ID: provider.StableID[thole.EventID]("before", string(t.ID)), Kind: event.NoteReported, Turn: t.ID, Time: w.cfg.Now().UTC(), Data: event.Data{
		Text: "this turn cannot be undone: the files before it could not be kept: " + err.Error()}}
	if err := w.cfg.Threads.Apply(ctx, w.ref(p.row.ID), []event.Event{note}); err != nil {
		w.log.Warn("say that files were not kept", "turn", t.ID, "err", err)
	}
}

// after keeps the files at a turn's end, next to their sync, and sends why it could not,
// "" if it could.
func (w *worker) after(ctx context.Context, th fold.Thread, t fold.Turn) <-chan string {
	out := make(chan string, 1)
	if w.cfg.Changes == nil {
		out <- ""
		return out
	}
	dir := ""
	if files, ok := w.cfg.Driver.(executor.Files); ok {
		dir, _ = files.WorkspaceDir(t.Executor)
	}
	go func() {
		err := w.inTime(errSlowChanges, func(ctx context.Context) error { return w.cfg.Changes.After(ctx, th, t.Number, dir) })(ctx)
		if err == nil || ctx.Err() != nil {
			out <- ""
			return
		}
		w.log.Warn("files were not kept after a turn", "turn", t.ID, "executor", t.Executor, "err", err)
		out <- "the turn's changes are not kept: " + err.Error()
	}()
	return out
}

// first keeps the files of a thread that works in the user's directory before the end of
// its turn is announced: what a person writes after hearing of it is not the turn's.
func (w *worker) first(ctx context.Context, id thole.ExecutorID) {
	if !w.th.Files.InPlace() || w.kept != nil {
		return
	}
	note := make(chan string, 1)
	note <- <-w.after(ctx, w.th, fold.Turn{ID: w.lease.Turn, Number: w.number, Executor: id})
	w.kept = note
}

var errSlowChanges = thole.Errorf(thole.CodeUnavailable, "looking for changes took longer than it may").WithHint("raise executor.sync_timeout, or have .gitignore name what is made and not written")

// undo runs a turn that puts files back. The turn's row is its intent: broken off, it is
// claimed and done again.
func (w *worker) undo(ctx context.Context, th fold.Thread, t fold.Turn, to string) error {
	turn, err := strconv.Atoi(to)
	if err != nil || w.cfg.Changes == nil {
		return thole.Errorf(thole.CodeUnsupported, "this server keeps no states of files to go back to")
	}
	p, err := w.prepare(ctx, th, t)
	if err != nil {
		return err
	}
	defer p.client.Close()
	var text string
	err = w.inTime(errSlowChanges, func(ctx context.Context) (err error) {
		text, err = w.cfg.Changes.Undo(ctx, th, w.target(th, p).Dir, t.Number, turn)
		return err
	})(ctx)
	if err != nil {
		return err
	}
	now := w.cfg.Now().UTC()
	note := event.Item{ID: provider.StableID[thole.ItemID]("undone", string(t.ID)), Kind: event.ItemSystem, State: event.StateCompleted, Text: text, Stamp: thole.Stamp{Started: now, Ended: now}}
	return w.cfg.Threads.Apply(ctx, w.ref(p.row.ID), []event.Event{
		{ID: provider.StableID[thole.EventID]("undone-note", string(t.ID)), Kind: event.ItemCompleted, Turn: t.ID, Time: now, Data: event.Data{Item: &note, ItemID: note.ID}},
		{ID: provider.StableID[thole.EventID]("undone", string(t.ID)), Kind: event.TurnEnded, Turn: t.ID, Time: now, Data: provider.Ended{Outcome: thole.OutcomeCompleted}.Data()},
	})
}
