package executors

import (
	"cmp"
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/diskspace"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/thread"
)

// SavedParams names a thread and what to wait for.
type SavedParams struct {
	Thread thole.ThreadID `json:"thread_id"`
	// Wait is "" for nothing, "sync" until the files of the last turn that ended are
	// saved or cannot be, "turn" until no turn runs either.
	Wait string `json:"wait,omitempty"`
}

// Saved says how far a thread's files are saved.
type Saved struct {
	// Running is the turn that is not over: what it does is not saved yet.
	Running thole.TurnID `json:"running_turn_id,omitempty"`
	// Saving: the sync of the last turn that ended is under way.
	Saving bool `json:"saving,omitempty"`
	// Unsaved is why the files of that turn are not saved.
	Unsaved string `json:"unsaved,omitempty"`
	// Waits is what holds up syncs and restores, or all that is recorded, in words.
	Waits string `json:"waits_for,omitempty"`
}

// lookAgain is how soon a change is found that no signal reports: an executor's
// row has none.
const lookAgain = 100 * time.Millisecond

// until calls look until it is done. The queue's signals make it quick; most of
// what is waited for ends with a row of it.
func (t *Service) until(ctx context.Context, look func() (bool, error)) error {
	moved := make(chan struct{}, 1)
	defer t.cfg.Queue.Subscribe(func() {
		select {
		case moved <- struct{}{}:
		default:
		}
	})()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		case <-moved:
		}
	}
}

// saved answers once what is asked for has come.
func (t *Service) saved(ctx context.Context, actor thole.Actor, p SavedParams) (s Saved, err error) {
	if p.Wait != "" && p.Wait != "sync" && p.Wait != "turn" {
		return s, thole.Errorf(thole.CodeInvalid, "wait for %q is unknown", p.Wait).WithHint("use sync or turn")
	}
	err = t.until(ctx, func() (bool, error) {
		s, err = t.savedNow(ctx, actor, p.Thread)
		return p.Wait == "" || !s.Saving && (p.Wait == "sync" || s.Running == ""), err
	})
	return s, err
}

func (t *Service) savedNow(ctx context.Context, actor thole.Actor, id thole.ThreadID) (s Saved, err error) {
	th, err := t.cfg.Threads.Get(ctx, actor, id)
	if err != nil {
		return s, err
	}
	s.Running = th.Open
	if away := t.cfg.Files.Away(); away != nil {
		s.Waits = away.Error()
	}
	s.Waits = cmp.Or(diskspace.Problem(t.cfg.Home), s.Waits)
	last, err := t.lastPlaced(ctx, actor, id)
	if err != nil || last.ID == "" {
		return s, err
	}
	if last.ID == s.Running {
		s.Running = "" // it ended between the two looks
	}
	if !last.Phase.Terminal() {
		s.Saving = true
		return s, nil
	}
	row, err := t.cfg.Rows.Get(ctx, last.Executor)
	if thole.CodeOf(err) == thole.CodeNotFound {
		return s, nil // a fork's turns ran in its parent's executors
	}
	if err != nil {
		return s, err
	}
	switch gone := row.State == executor.RowDeleted; {
	case row.SyncStatus == executor.SyncFailed:
		s.Unsaved = row.SyncError
	case row.SyncStatus == executor.SyncRunning && gone:
		s.Unsaved = "the executor was gone before they were"
	case row.SyncStatus == executor.SyncRunning:
		s.Saving = true
	}
	return s, nil
}

// lastPlaced is the newest turn that ended and was given to an executor.
func (t *Service) lastPlaced(ctx context.Context, actor thole.Actor, id thole.ThreadID) (fold.Turn, error) {
	for cursor := ""; ; {
		page, err := t.cfg.Threads.Turns(ctx, actor, id, thread.PageParams{Limit: 20, Desc: true, Cursor: cursor})
		if err != nil {
			return fold.Turn{}, err
		}
		for _, turn := range page.Items {
			if turn.Outcome != "" && turn.Executor != "" {
				return turn, nil
			}
		}
		if cursor = page.Next; cursor == "" {
			return fold.Turn{}, nil
		}
	}
}

// StoppedParams names a thread whose executors were asked to stop, and when.
type StoppedParams struct {
	Thread thole.ThreadID `json:"thread_id"`
	Asked  time.Time      `json:"asked_at"`
}

// stopped answers once a thread's executors have stopped with their files saved,
// and fails with the first reason why one could not. That is tried again without
// anybody waiting.
func (t *Service) stopped(ctx context.Context, actor thole.Actor, p StoppedParams) error {
	if _, err := t.cfg.Threads.Get(ctx, actor, p.Thread); err != nil {
		return err
	}
	return t.until(ctx, func() (bool, error) {
		asked, err := t.cfg.Queue.Newest(ctx, p.Thread, queue.Stop) // before the rows: it ends after they changed
		if err != nil && thole.CodeOf(err) != thole.CodeNotFound {
			return false, err
		}
		rows, err := t.cfg.Rows.Of(ctx, p.Thread)
		if err != nil {
			return false, err
		}
		for _, row := range rows {
			if row.SyncStatus == executor.SyncFailed && !row.SyncStarted.Before(p.Asked) {
				return false, unsaved(row.SyncError).WithHint("the executor keeps running and thole tries again; once the cause is mended: thole thread close %s", p.Thread)
			}
			if row.State != executor.RowRunning || !row.LastSync.Before(p.Asked) && asked.State == queue.Done {
				continue // in the latter case a message woke it again
			}
			if asked.State == queue.Done {
				return false, thole.Errorf(thole.CodeUnavailable, "the executor was not stopped: %s", asked.LastError).WithHint("thole tries again when it is idle")
			}
			return false, nil
		}
		return true, nil
	})
}

func unsaved(why string) *thole.Error {
	return thole.Errorf(thole.CodeUnavailable, "the thread's files are not saved: %s", why)
}
