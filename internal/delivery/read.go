package delivery

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
)

// Head is the first open batch of a lane, nil if there is none.
func (m *Machine) Head(ctx context.Context, laneID string) (b *Batch, err error) {
	err = m.store.View(ctx, func(tx Tx) error { b, err = tx.HeadBatch(laneID); return err })
	return b, err
}

// Job returns a job of the actor.
func (m *Machine) Job(ctx context.Context, actor thole.Actor, id thole.JobID) (Job, *Batch, error) {
	var job Job
	var batch *Batch
	may, err := m.reach(ctx, actor, authz.ViewThread)
	if err != nil {
		return job, nil, err
	}
	err = m.store.View(ctx, func(tx Tx) error {
		j, err := tx.Job(id)
		if err != nil {
			return err
		}
		if j == nil || !may.to(j.Owner) {
			return thole.Errorf(thole.CodeNotFound, "no job %s", id).WithHint("thole job list shows the jobs of this home")
		}
		job, batch = *j, nil
		// A child's result travels in the batch of its topmost parent.
		for top := j; ; {
			if top.Batch != "" {
				batch, err = tx.Batch(top.Batch)
				return err
			}
			if top.Parent == "" {
				return nil
			}
			if top, err = tx.Job(top.Parent); err != nil || top == nil {
				return err
			}
		}
	})
	return job, batch, err
}

// StateOf is the state of a job, whichever user owns it; "" if there is none.
func (m *Machine) StateOf(ctx context.Context, id thole.JobID) (state thole.JobState, err error) {
	err = m.store.View(ctx, func(tx Tx) error {
		j, err := tx.Job(id)
		if state = ""; j != nil {
			state = j.State
		}
		return err
	})
	return state, err
}

// Jobs lists jobs of the actor, newest first.
func (m *Machine) Jobs(ctx context.Context, actor thole.Actor, f JobFilter) (jobs []Job, err error) {
	f.User = actor.User
	err = m.store.View(ctx, func(tx Tx) error {
		if f.After != "" {
			if last, err := tx.Job(f.After); err != nil || last == nil || last.Owner.User != actor.User {
				return overtaken(err)
			}
		}
		jobs, err = tx.Jobs(f)
		return err
	})
	return jobs, err
}

// overtaken refuses to continue after a row that is not there any more.
func overtaken(err error) error {
	if err != nil {
		return err
	}
	return thole.Errorf(thole.CodeGone, "cursor too old: what it names is not kept any more").WithHint("read the list from its beginning")
}

// Batches lists batches of the actor, newest first.
func (m *Machine) Batches(ctx context.Context, actor thole.Actor, f BatchFilter) (out []BatchView, err error) {
	f.User = actor.User
	err = m.store.View(ctx, func(tx Tx) error {
		out = nil
		if f.After != "" {
			last, err := tx.Batch(f.After)
			if err != nil || last == nil {
				return overtaken(err)
			}
			if lane, err := tx.Lane(last.LaneID); err != nil || lane.User != actor.User {
				return overtaken(err)
			}
		}
		batches, err := tx.Batches(f)
		if err != nil {
			return err
		}
		for _, b := range batches {
			lane, err := tx.Lane(b.LaneID)
			if err != nil {
				return err
			}
			v := BatchView{Lane: *lane, Batch: b}
			if b.State != thole.BatchClosed {
				head, err := tx.HeadBatch(b.LaneID)
				if err != nil {
					return err
				}
				v.Head = head != nil && head.ID == b.ID
			}
			out = append(out, v)
		}
		return nil
	})
	return out, err
}

// BatchView is everything about a batch, for humans: its jobs, all its attempts
// and its ledger, in the order it was written.
type BatchView struct {
	Lane     Lane
	Batch    Batch
	Head     bool // first of its thread
	Jobs     []ParcelJob
	Attempts []Attempt
	Ledger   []Audit
}

// Inspect returns one batch's jobs, attempts and audit trail.
func (m *Machine) Inspect(ctx context.Context, actor thole.Actor, id thole.BatchID) (v BatchView, err error) {
	may, err := m.reach(ctx, actor, authz.ViewThread)
	if err != nil {
		return v, err
	}
	err = m.store.View(ctx, func(tx Tx) error {
		b, err := tx.Batch(id)
		if err != nil {
			return err
		}
		if b != nil {
			v, err = view(tx, b)
		}
		if err == nil && (b == nil || !may.to(v.Lane.Owner)) {
			return thole.Errorf(thole.CodeNotFound, "no batch %s", id)
		}
		return err
	})
	return v, err
}

// InspectHead is Inspect of the batch that is first for a thread.
func (m *Machine) InspectHead(ctx context.Context, actor thole.Actor, laneID string) (v BatchView, err error) {
	may, err := m.reach(ctx, actor, authz.ViewThread)
	if err != nil {
		return v, err
	}
	err = m.store.View(ctx, func(tx Tx) error {
		b, err := tx.HeadBatch(laneID)
		if err != nil {
			return err
		}
		if b != nil {
			v, err = view(tx, b)
		}
		if err == nil && (b == nil || !may.to(v.Lane.Owner)) {
			return thole.Errorf(thole.CodeNotFound, "no open batch for this thread")
		}
		return err
	})
	return v, err
}

func view(tx Tx, b *Batch) (BatchView, error) {
	v := BatchView{Batch: *b}
	lane, err := tx.Lane(b.LaneID)
	if err != nil {
		return v, err
	}
	v.Lane = *lane
	head, err := tx.HeadBatch(b.LaneID)
	if err != nil {
		return v, err
	}
	v.Head = head != nil && head.ID == b.ID
	jobs, err := tx.JobsOf(b.ID)
	if err != nil {
		return v, err
	}
	if v.Jobs, err = nest(tx, jobs); err != nil {
		return v, err
	}
	if v.Attempts, err = tx.AttemptsOf(b.ID); err != nil {
		return v, err
	}
	v.Ledger, err = tx.Audits(AuditFilter{Batch: b.ID})
	return v, err
}

// Ledger lists audit rows of the actor's lanes in the order they were written.
func (m *Machine) Ledger(ctx context.Context, actor thole.Actor, f AuditFilter) (rows []Audit, err error) {
	if !actor.Valid() {
		return nil, thole.Errorf(thole.CodeUnauthorized, "audit: no actor")
	}
	f.User = actor.User
	err = m.store.View(ctx, func(tx Tx) error { rows, err = tx.Audits(f); return err })
	return rows, err
}

// Pending is what is not finished, for the process that decides whether to stay.
func (m *Machine) Pending(ctx context.Context) (p Pending, err error) {
	err = m.store.View(ctx, func(tx Tx) error { p, err = tx.Pending(); return err })
	return p, err
}

// Live lists every attempt that some driver must follow.
func (m *Machine) Live(ctx context.Context) ([]Parcel, error) {
	return walk(ctx, m, func(tx Tx, last *Parcel) (page []Parcel, err error) {
		after := thole.AttemptID("")
		if last != nil {
			after = last.Attempt.ID
		}
		attempts, err := tx.LiveAttempts(after, walkPage)
		for _, a := range attempts {
			lane, err := tx.Lane(a.LaneID)
			if err != nil {
				return nil, err
			}
			b, err := tx.Batch(a.Batch)
			if err != nil {
				return nil, err
			}
			page = append(page, Parcel{Lane: *lane, Batch: *b, Attempt: a})
		}
		return page, err
	})
}

// Supervised lists every running job whose command a supervisor must end.
func (m *Machine) Supervised(ctx context.Context) ([]Job, error) {
	return walk(ctx, m, func(tx Tx, last *Job) ([]Job, error) {
		f := JobFilter{Supervised: true, Limit: walkPage}
		if last != nil {
			f.After = last.ID
		}
		return tx.Jobs(f)
	})
}

// Commands lists every running job that runs in the box of its thread.
func (m *Machine) Commands(ctx context.Context) ([]Job, error) {
	return walk(ctx, m, func(tx Tx, last *Job) ([]Job, error) {
		f := JobFilter{Commands: true, Limit: walkPage}
		if last != nil {
			f.After = last.ID
		}
		return tx.Jobs(f)
	})
}

// walkPage is how many rows a list that must be whole reads at once.
const walkPage = 500

// walk reads a list to its end, page by page. Pages are by id, so that no row that
// is there all along is left out or comes twice, whatever changes meanwhile.
func walk[T any](ctx context.Context, m *Machine, list func(tx Tx, last *T) ([]T, error)) (all []T, err error) {
	for {
		var last *T
		if len(all) > 0 {
			last = &all[len(all)-1]
		}
		var page []T
		if err := m.store.View(ctx, func(tx Tx) error { page, err = list(tx, last); return err }); err != nil {
			return nil, err
		}
		if all = append(all, page...); len(page) < walkPage {
			return all, nil
		}
	}
}
