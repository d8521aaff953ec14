package executors

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/thread"
)

// Left is an executor that goes on when its owner ends.
type Left struct {
	Thread   thole.ThreadID
	Executor thole.ExecutorID
	// Turn is the one under way, "" if there is none; Waits says that it waits for a person.
	Turn  thole.TurnID
	Waits bool
	// Jobs are those whose command is running in it.
	Jobs []thole.JobID
}

// Left lists the executors that run.
func (t *Service) Left(ctx context.Context) (out []Left, err error) {
	jobs, err := t.jobs(ctx)
	if err != nil {
		return nil, err
	}
	for after := thole.ExecutorID(""); ; {
		rows, err := t.cfg.Rows.Live(ctx, after, 500)
		if err != nil {
			return out, err
		}
		for _, row := range rows {
			after = row.ID
			if row.State != executor.RowRunning {
				continue
			}
			l := Left{Thread: row.Thread, Executor: row.ID, Jobs: jobs[row.ID]}
			if open, err := t.open(ctx, row.Thread); err == nil && open != nil {
				l.Turn, l.Waits = open.ID, open.Phase == thole.PhaseWaitingHuman
			}
			out = append(out, l)
		}
		if len(rows) < 500 {
			return out, nil
		}
	}
}

// jobs are those whose command is running, by executor.
func (t *Service) jobs(ctx context.Context) (map[thole.ExecutorID][]thole.JobID, error) {
	if t.cfg.Jobs == nil {
		return nil, nil
	}
	running, err := t.cfg.Jobs(ctx)
	by := map[thole.ExecutorID][]thole.JobID{}
	for _, j := range running {
		if j.Executor != "" {
			by[j.Executor] = append(by[j.Executor], j.ID)
		}
	}
	return by, err
}

// open is a thread's turn that has not ended.
func (t *Service) open(ctx context.Context, id thole.ThreadID) (*fold.Turn, error) {
	page, err := t.cfg.Threads.Turns(ctx, thole.SystemActor, id, thread.PageParams{Limit: 1})
	if err != nil || len(page.Items) == 0 || page.Items[0].Outcome != "" {
		return nil, err
	}
	return &page.Items[0], nil
}

// close asks for threads' executors to be synced and stopped, after the turns they
// have.
func (t *Service) close(ctx context.Context, actor thole.Actor, p CloseParams) (CloseResult, error) {
	out := CloseResult{Threads: []thole.ThreadID{p.Thread}}
	if p.All {
		out.Threads = []thole.ThreadID{}
		list, err := t.Left(ctx)
		if err != nil {
			return out, err
		}
		for _, l := range list {
			if _, err := t.cfg.Threads.Get(authz.Sifting(ctx), actor, l.Thread); err == nil {
				out.Threads = append(out.Threads, l.Thread)
			}
		}
	}
	var err error
	if out.Asked, err = t.cfg.Rows.Now(ctx); err != nil {
		return out, err
	}
	for _, id := range out.Threads {
		if _, err := t.cfg.Threads.Get(ctx, actor, id); err != nil {
			return out, err
		}
		if err := t.cfg.Dispatcher.Close(ctx, id); err != nil {
			return out, err
		}
		if !p.Interrupt {
			continue
		}
		open, err := t.open(ctx, id)
		if err == nil && open != nil {
			err = t.cfg.Threads.Interrupt(ctx, actor, id, open.ID)
		}
		if code := thole.CodeOf(err); err != nil && code != thole.CodeConflict && code != thole.CodeNotFound { // it ended meanwhile
			return out, err
		}
	}
	return out, nil
}
