package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/thread"
)

// Threads implements thread.Store. A turn's start, answer and end move its row of
// the turn queue in the same transaction.
type Threads struct{ db *DB }

var _ thread.Store = (*Threads)(nil)

// Threads returns the thread store of this database.
func (db *DB) Threads() *Threads { return &Threads{db: db} }

const threadTopic = "threads"

// Shared implements thread.Store.
func (s *Threads) Shared() bool { return s.db.Engine() == sqldb.Postgres }

// Watch implements thread.Store.
func (s *Threads) Watch(fn func(thole.ThreadID)) (cancel func()) {
	return s.db.Subscribe(threadTopic, func(key string) { fn(thole.ThreadID(key)) })
}

// Commit implements thread.Store.
func (s *Threads) Commit(ctx context.Context, step string, c *thread.Commit) error {
	return s.update(ctx, step, func(tx *sqldb.Tx) error { return s.commit(tx, c) })
}

// update gives the kernel's errors the port's names.
func (s *Threads) update(ctx context.Context, step string, fn func(*sqldb.Tx) error) error {
	err := s.db.Update(ctx, step, fn)
	if errors.Is(err, queue.ErrLeaseLost) {
		return thread.ErrFenced
	}
	return err
}

func (s *Threads) commit(tx *sqldb.Tx, c *thread.Commit) error {
	if err := fenceTurn(tx, c.Fence.Turn, c.Fence.Token); err != nil {
		return err
	}
	if err := putThread(tx, c); err != nil {
		return err
	}
	if err := s.place(tx, c); err != nil {
		return err
	}
	id := c.Row.Thread.ID
	for _, e := range c.Events {
		if err := putEvent(tx, e); err != nil {
			return err
		}
	}
	for _, write := range []func(*sqldb.Tx, thole.ThreadID, *thread.Commit) error{
		putTurns, putReverted, putSpent, putItems, putOutputs, putAsks, putTodos, putQueue, putUsage,
	} {
		if err := write(tx, id, c); err != nil {
			return err
		}
	}
	if err := s.moveQueue(tx, c); err != nil {
		return err
	}
	tx.Notify(threadTopic, string(id))
	return linkEvents(tx, c)
}

// place records on which server's machine the files of a new thread are, if they are on one. A
// fork's are where its parent's are.
func (s *Threads) place(tx *sqldb.Tx, c *thread.Commit) error {
	t := c.Row.Thread
	if !c.Create || !s.db.shared() || !t.Files.InPlace() && !strings.HasPrefix(t.Files.Repo, "/") {
		return nil
	}
	_, err := tx.Exec(`insert into thread_places (thread_id, server_id) values ($1, coalesce((select server_id from thread_places where thread_id = $3), $2))`, t.ID, s.db.server, t.ForkedFrom)
	return err
}

// moveQueue keeps the turn queue in step with the log: a start adds a row, an
// answer to a parked turn makes its row ready, an interrupt marks it.
func (s *Threads) moveQueue(tx *sqldb.Tx, c *thread.Commit) error {
	for _, e := range c.Events {
		var err error
		switch e.Kind {
		case event.TurnStarted:
			for _, st := range enqueue(queue.Item{Turn: e.Turn, Thread: e.Thread, User: c.Row.Thread.Owner.User}) {
				if err := tx.Run(st); err != nil {
					return err
				}
			}
			err = s.db.Queue().serve(tx, e.Turn)
		case event.AskResolved:
			_, err = unparkTurn(tx, e.Turn)
		case event.TurnInterrupt:
			_, err = cancelTurn(tx, e.Turn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// putThread moves the thread's row from the expected sequence number on.
func putThread(tx *sqldb.Tx, c *thread.Commit) error {
	t, r := c.Row.Thread, c.Row
	args := []any{
		t.ID, t.Name, t.Preview, t.Settings.Provider, t.WorkDir(), asJSON(t.Settings), t.NativeID, t.Origin, t.Archived,
		thole.Millis(t.Updated), int64(t.Seq), int64(t.Turns), t.Open, int64(r.Approvals), int64(r.Inputs), string(r.LastOutcome),
		r.Paused, int64(r.Step), asJSON(t.Usage), goalOf(t), t.Pinned, t.Retell, gitOf(t),
	}
	if !c.Create {
		ok, err := tx.ExecOne(`update threads set name = $2, preview = $3, provider = $4, dir = $5, settings = $6,
			native_id = $7, origin = $8, archived = $9, updated_at = $10, seq = $11, turns = $12, open_turn = $13,
			approvals = $14, inputs = $15, last_outcome = $16, paused = $17, step_seq = $18, usage = $19, goal = $20, pinned = $21, retell = $22, git = $23
			where id = $1 and seq = $24`, append(args, int64(c.Expected))...)
		if err == nil && !ok {
			return thread.ErrStale
		}
		return err
	}
	var gone int
	if err := tx.QueryRow(`select count(*) from deleted_threads where id = $1`, t.ID).Scan(&gone); err != nil || gone > 0 {
		return cmp.Or(err, thread.ErrDeleted)
	}
	ok, err := tx.ExecOne(`insert into threads (id, name, preview, provider, dir, settings, native_id, origin, archived,
			updated_at, seq, turns, open_turn, approvals, inputs, last_outcome, paused, step_seq, usage, goal, pinned, retell, git,
			app_id, project_id, user_id, source, client, ephemeral, forked_from, parent_id, created_at, floor, files, source_kind, source_at, tools)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
			$20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37)
		on conflict do nothing`, append(args,
		t.Owner.App, t.Owner.Project, t.Owner.User, t.Source, t.Client, t.Ephemeral, t.ForkedFrom, t.Parent,
		thole.Millis(t.Created), int64(t.Floor), asJSON(t.Files), string(t.Files.Kind), t.Files.At(), listOrNone(t.Tools))...)
	if err == nil && !ok {
		return thread.ErrExists
	}
	return err
}

// goalOf is the column form of a thread's goal.
func goalOf(t fold.Thread) string {
	if t.Goal == nil {
		return ""
	}
	return asJSON(t.Goal)
}

// gitOf is the column form of what a client said of a thread's repository.
func gitOf(t fold.Thread) string {
	if t.Git == (event.Git{}) {
		return ""
	}
	return asJSON(t.Git)
}

func putEvent(tx *sqldb.Tx, e event.Event) error {
	ok, err := tx.ExecOne(`insert into thread_events (thread_id, seq, event_id, kind, turn_id, executor_id, trace, actor, at, data)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict do nothing`,
		e.Thread, int64(e.Seq), e.ID, string(e.Kind), e.Turn, e.Executor, e.Trace, asJSON(e.Actor), thole.Millis(e.Time), asJSON(e.Data))
	if err == nil && !ok {
		return thread.ErrRepeat
	}
	return err
}

// Draft implements thread.Store.
func (s *Threads) Draft(ctx context.Context, id thole.ThreadID, drafts []thread.Draft) error {
	if len(drafts) == 0 {
		return nil
	}
	return s.update(ctx, "thread.draft", func(tx *sqldb.Tx) error {
		for _, d := range drafts {
			_, err := tx.Exec(`insert into thread_drafts (thread_id, item_id, stream, start_at, turn_id, body)
				select $1, $2, $3, $4, $5, $6 where exists
				(select 1 from thread_items where thread_id = $1 and turn_id = $5 and item_id = $2 and is_open)
				on conflict do nothing`, id, d.Item, string(d.Stream), d.Offset, d.Turn, packText(d.Text))
			if err != nil {
				return err
			}
		}
		tx.Notify(threadTopic, string(id))
		return nil
	})
}

// packText keeps bytes that a text column refuses (NUL, invalid UTF-8) by
// quoting; the first character says how to read the rest.
func packText(s string) string {
	for i := range len(s) {
		if s[i] == 0 || s[i] >= 0x80 {
			return "q" + strconv.QuoteToASCII(s)
		}
	}
	return "t" + s
}

func unpackText(s string) (string, error) {
	switch {
	case s == "":
		return "", errors.New("empty draft")
	case s[0] == 'q':
		return strconv.Unquote(s[1:])
	}
	return s[1:], nil
}

// Delete implements thread.Store.
func (s *Threads) Delete(ctx context.Context, id thole.ThreadID, expected uint64) error {
	return s.update(ctx, "thread.delete", func(tx *sqldb.Tx) error {
		var open thole.TurnID
		var owner thole.Owner
		var ephemeral bool
		err := tx.QueryRow(`select open_turn, app_id, user_id, project_id, ephemeral from threads where id = $1`+tx.ForUpdate(), id).Scan(&open, &owner.App, &owner.User, &owner.Project, &ephemeral)
		if sqldb.NoRows(err) {
			return thread.ErrNone
		}
		if err != nil {
			return err
		}
		if open != "" {
			if _, err := cancelTurn(tx, open); err != nil {
				return err
			}
		}
		ok, err := tx.ExecOne(`delete from threads where id = $1 and seq = $2`, id, int64(expected))
		if err == nil && !ok {
			return thread.ErrStale
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(`delete from thread_places where thread_id = $1`, id); err != nil {
			return err
		}
		tx.Notify(threadTopic, string(id))
		_, err = tx.Exec(`insert into deleted_threads (id, user_id, project_id, deleted_at) values ($1, $2, $3, $4) on conflict do nothing`,
			id, owner.User, owner.Project, instant(tx.Now()))
		if err != nil || ephemeral { // which ends by itself
			return err
		}
		_, err = link(tx, audit.Entry{Action: "thread.delete", Kind: "thread", ID: string(id), App: owner.App, Project: owner.Project, Owner: owner.User})
		return err
	})
}

// Deleted implements thread.Store.
func (s *Threads) Deleted(ctx context.Context, id thole.ThreadID) (thole.Owner, error) {
	return viewOne(ctx, s, func(tx *sqldb.Tx) (owner thole.Owner, err error) {
		return first(tx, func(rows *sql.Rows) (o thole.Owner, err error) { return o, rows.Scan(&o.User, &o.Project) },
			`select user_id, project_id from deleted_threads where id = $1`, id)
	})
}

// Fork implements thread.Store.
func (s *Threads) Fork(ctx context.Context, parent thole.ThreadID, upTo int, c *thread.Commit) error {
	return s.update(ctx, "thread.fork", func(tx *sqldb.Tx) error {
		if err := s.commit(tx, c); err != nil {
			return err
		}
		id := c.Row.Thread.ID
		if err := forkWorkspace(tx, parent, id, upTo); err != nil {
			return err
		}
		_, err := tx.Exec(`insert into turns (thread_id, turn_id, number, seq, input, client_id, actor, settings, phase, outcome,
				error, usage, executor_id, trace, interrupted, stop, deferred, reply, run, steers, idem_key, created_at, started_at, ended_at, spent, output_schema, native_id)
			select $1, turn_id, number, seq, input, client_id, actor, settings,
				case outcome when 'completed' then 'succeeded' when 'interrupted' then 'canceled' else 'failed' end, outcome,
				error, usage, executor_id, trace, interrupted, stop, '', '', run, steers, '', created_at, started_at, ended_at, spent, output_schema, native_id
			from turns where thread_id = $2 and number <= $3 and outcome <> '' and not reverted`, id, parent, int64(upTo))
		if err != nil {
			return err
		}
		_, err = tx.Exec(`insert into thread_items (thread_id, item_id, turn_id, seq, kind, is_open, body, search)
			select $1, i.item_id, i.turn_id, i.seq, i.kind, i.is_open, i.body, i.search from thread_items i
			join turns t on t.thread_id = i.thread_id and t.turn_id = i.turn_id
			where i.thread_id = $2 and t.number <= $3 and t.outcome <> '' and not t.reverted`, id, parent, int64(upTo))
		if err != nil {
			return err
		}
		_, err = tx.Exec(`insert into item_outputs (thread_id, turn_id, item_id, start_at, size, body)
			select $1, o.turn_id, o.item_id, o.start_at, o.size, o.body from item_outputs o
			join turns t on t.thread_id = o.thread_id and t.turn_id = o.turn_id
			where o.thread_id = $2 and t.number <= $3 and t.outcome <> '' and not t.reverted`, id, parent, int64(upTo))
		return err
	})
}

// Compact implements thread.Store.
func (s *Threads) Compact(ctx context.Context, id thole.ThreadID, floor uint64) error {
	return s.update(ctx, "thread.compact", func(tx *sqldb.Tx) error {
		ok, err := tx.ExecOne(`update threads set floor = $2 where id = $1 and floor < $2 and seq >= $2`, id, int64(floor))
		if err != nil || !ok {
			return err // another reader went as far already
		}
		_, err = tx.Exec(`delete from thread_events where thread_id = $1 and seq <= $2`, id, int64(floor))
		return err
	})
}
