package store

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/thread"
)

// first returns the only row of a query, or thread.ErrNone.
func first[T any](tx *sqldb.Tx, scan func(*sql.Rows) (T, error), query string, args ...any) (T, error) {
	all, err := sqldb.All(tx, scan, query, args...)
	if err == nil && len(all) == 0 {
		err = thread.ErrNone
	}
	if err != nil {
		var none T
		return none, err
	}
	return all[0], nil
}

// viewOne runs one reading function on a snapshot.
func viewOne[T any](ctx context.Context, s *Threads, fn func(tx *sqldb.Tx) (T, error)) (v T, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) (err error) {
		v, err = fn(tx)
		return err
	})
	return v, err
}

const selectThread = `select ` + threadColumns + ` from threads where id = $1`

// Head implements thread.Store.
func (s *Threads) Head(ctx context.Context, id thole.ThreadID) (*thread.Head, error) {
	return viewOne(ctx, s, func(tx *sqldb.Tx) (*thread.Head, error) {
		row, err := first(tx, scanThread, selectThread, id)
		if err != nil {
			return nil, err
		}
		h := &thread.Head{Row: row}
		if h.Todos, err = selectTodos(tx, id); err != nil {
			return nil, err
		}
		if h.Queue, err = selectQueue(tx, id); err != nil {
			return nil, err
		}
		turn := row.Thread.Open
		if turn == "" {
			return h, nil
		}
		open, err := first(tx, scanTurn, `select `+turnColumns+` from turns where thread_id = $1 and turn_id = $2`, id, turn)
		if err != nil {
			return nil, err
		}
		h.Open = &open
		if h.Items, err = sqldb.All(tx, scanItem, `select turn_id, seq, is_open, body from thread_items
			where thread_id = $1 and turn_id = $2 order by seq`, id, turn); err != nil {
			return nil, err
		}
		asks, err := sqldb.All(tx, scanAsk, selectAsks+` and turn_id = $2 order by asked_at, ask_id`, id, turn)
		if err != nil {
			return nil, err
		}
		for _, a := range asks {
			if a.State == event.AskPending {
				h.Asks = append(h.Asks, a)
			} else {
				h.Settled = append(h.Settled, a)
			}
		}
		h.Drafts, err = selectDrafts(tx, id)
		return h, err
	})
}

const selectAsks = `select thread_id, turn_id, state, body, answer, actor, asked_at, resolved_at, receipt from asks where thread_id = $1`

func selectTodos(tx *sqldb.Tx, id thole.ThreadID) ([]event.Todo, error) {
	return sqldb.All(tx, scanTodo, `select todo_id, content, state, position from todos where thread_id = $1 order by position, todo_id`, id)
}

func selectQueue(tx *sqldb.Tx, id thole.ThreadID) ([]event.Message, error) {
	return sqldb.All(tx, scanMessage, `select message_id, thread_id, input, client_id, actor, created_at from thread_queue
		where thread_id = $1 order by position`, id)
}

func selectDrafts(tx *sqldb.Tx, id thole.ThreadID) ([]thread.Draft, error) {
	return sqldb.All(tx, func(rows *sql.Rows) (d thread.Draft, err error) {
		var body string
		if err = rows.Scan(&d.Turn, &d.Item, &d.Stream, &d.Offset, &body); err == nil {
			d.Text, err = unpackText(body)
		}
		return d, err
	}, `select turn_id, item_id, stream, start_at, body from thread_drafts where thread_id = $1 order by item_id, stream, start_at`, id)
}

// Drafts implements thread.Store.
func (s *Threads) Drafts(ctx context.Context, id thole.ThreadID) ([]thread.Draft, error) {
	return viewOne(ctx, s, func(tx *sqldb.Tx) ([]thread.Draft, error) { return selectDrafts(tx, id) })
}

// Thread implements thread.Store.
func (s *Threads) Thread(ctx context.Context, id thole.ThreadID) (fold.Row, error) {
	return viewOne(ctx, s, func(tx *sqldb.Tx) (fold.Row, error) { return first(tx, scanThread, selectThread, id) })
}

// Turn implements thread.Store.
func (s *Threads) Turn(ctx context.Context, id thole.ThreadID, turn thole.TurnID) (fold.Turn, error) {
	return viewOne(ctx, s, func(tx *sqldb.Tx) (fold.Turn, error) {
		return first(tx, scanTurn, `select `+turnColumns+` from turns where thread_id = $1 and turn_id = $2 and not reverted`, id, turn)
	})
}

// TurnByKey implements thread.Store.
func (s *Threads) TurnByKey(ctx context.Context, id thole.ThreadID, key string) (fold.Turn, error) {
	return viewOne(ctx, s, func(tx *sqldb.Tx) (fold.Turn, error) {
		return first(tx, scanTurn, `select `+turnColumns+` from turns where thread_id = $1 and idem_key = $2 and idem_key <> ''`, id, key)
	})
}

// ranged is the keyset part of a query over an ascending number. $2 is the
// position; args start after it.
func ranged(column string, q thread.RangeQuery) string {
	op, dir := ">", "asc"
	if q.Desc {
		op, dir = "<", "desc"
	}
	if q.After == 0 {
		return ` and $2 = 0 order by ` + column + ` ` + dir + ` limit $3 + 0`
	}
	return ` and ` + column + ` ` + op + ` $2 order by ` + column + ` ` + dir + ` limit $3 + 0`
}

// Turns implements thread.Store.
func (s *Threads) Turns(ctx context.Context, id thole.ThreadID, q thread.RangeQuery) ([]fold.Turn, error) {
	return viewOne(ctx, s, func(tx *sqldb.Tx) ([]fold.Turn, error) {
		return sqldb.All(tx, scanTurn, `select `+turnColumns+` from turns where thread_id = $1 and not reverted`+ranged("number", q), id, int64(q.After), int64(q.Limit))
	})
}

// Items implements thread.Store.
func (s *Threads) Items(ctx context.Context, id thole.ThreadID, turn thole.TurnID, q thread.RangeQuery) ([]fold.ItemRecord, error) {
	const columns = `select turn_id, seq, is_open, body from thread_items where thread_id = $1 and not reverted`
	return viewOne(ctx, s, func(tx *sqldb.Tx) ([]fold.ItemRecord, error) {
		if turn == "" {
			return sqldb.All(tx, scanItem, columns+ranged("seq", q), id, int64(q.After), int64(q.Limit))
		}
		return sqldb.All(tx, scanItem, columns+` and turn_id = $4`+ranged("seq", q), id, int64(q.After), int64(q.Limit), turn)
	})
}

// TurnItems implements thread.Store.
func (s *Threads) TurnItems(ctx context.Context, id thole.ThreadID, turns []thole.TurnID, said bool, limit int) ([]fold.ItemRecord, error) {
	if len(turns) == 0 {
		return nil, nil
	}
	args := []any{id, int64(limit)}
	for _, t := range turns {
		args = append(args, t)
	}
	query := `select turn_id, seq, is_open, body from thread_items where thread_id = $1 and not reverted and turn_id in (` + marks(3, len(turns)) + `)`
	if said {
		query += ` and kind in ('user_message', 'message', 'system')`
	}
	return viewOne(ctx, s, func(tx *sqldb.Tx) ([]fold.ItemRecord, error) {
		return sqldb.All(tx, scanItem, query+` order by seq desc limit $2 + 0`, args...)
	})
}

// Asks implements thread.Store.
func (s *Threads) Asks(ctx context.Context, id thole.ThreadID, pendingOnly bool) ([]fold.AskRecord, error) {
	query := selectAsks + ` and turn_id not in (select t.turn_id from turns t where t.thread_id = $1 and t.reverted)`
	if pendingOnly {
		query += ` and state = 'pending'`
	}
	return viewOne(ctx, s, func(tx *sqldb.Tx) ([]fold.AskRecord, error) {
		return sqldb.All(tx, scanAsk, query+` order by asked_at, ask_id`, id)
	})
}

// Ask implements thread.Store.
func (s *Threads) Ask(ctx context.Context, id thole.ThreadID, ask thole.AskID) (fold.AskRecord, error) {
	return viewOne(ctx, s, func(tx *sqldb.Tx) (fold.AskRecord, error) {
		return first(tx, scanAsk, selectAsks+` and ask_id = $2`, id, ask)
	})
}

// Todos implements thread.Store.
func (s *Threads) Todos(ctx context.Context, id thole.ThreadID) ([]event.Todo, error) {
	return viewOne(ctx, s, func(tx *sqldb.Tx) ([]event.Todo, error) { return selectTodos(tx, id) })
}

// Queue implements thread.Store.
func (s *Threads) Queue(ctx context.Context, id thole.ThreadID) ([]event.Message, error) {
	return viewOne(ctx, s, func(tx *sqldb.Tx) ([]event.Message, error) { return selectQueue(tx, id) })
}

const selectEvents = `select thread_id, seq, event_id, kind, turn_id, executor_id, trace, actor, at, data
	from thread_events where thread_id = $1`

// Events implements thread.Store.
func (s *Threads) Events(ctx context.Context, id thole.ThreadID, after uint64, limit int) ([]event.Event, error) {
	return viewOne(ctx, s, func(tx *sqldb.Tx) ([]event.Event, error) {
		events, err := sqldb.All(tx, scanEvent, selectEvents+` and seq > $2 order by seq limit $3 + 0`, id, int64(after), int64(limit))
		if err == nil && len(events) == 0 {
			_, err = first(tx, scanID[thole.ThreadID], `select id from threads where id = $1`, id)
		}
		return events, err
	})
}

// Network implements thread.Store.
func (s *Threads) Network(ctx context.Context, id thole.ThreadID, limit int) ([]event.Event, error) {
	return viewOne(ctx, s, func(tx *sqldb.Tx) ([]event.Event, error) {
		events, err := sqldb.All(tx, scanEvent, selectEvents+` and kind = 'network.updated' order by seq desc limit $2 + 0`, id, int64(limit))
		slices.Reverse(events)
		return events, err
	})
}

// Known implements thread.Store.
func (s *Threads) Known(ctx context.Context, id thole.ThreadID, ids []thole.EventID) (map[thole.EventID]bool, error) {
	const chunk = 500
	known := map[thole.EventID]bool{}
	err := s.db.View(ctx, func(tx *sqldb.Tx) error {
		for len(ids) > 0 {
			n := min(len(ids), chunk)
			args := []any{id}
			for _, e := range ids[:n] {
				args = append(args, e)
			}
			ids = ids[n:]
			found, err := sqldb.All(tx, scanID[thole.EventID],
				`select event_id from thread_events where thread_id = $1 and event_id in (`+marks(2, n)+`)`, args...)
			if err != nil {
				return err
			}
			for _, e := range found {
				known[e] = true
			}
		}
		return nil
	})
	return known, err
}

// marks is "$from, …" for n arguments.
func marks(from, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = "$" + strconv.Itoa(from+i)
	}
	return strings.Join(all, ", ")
}

func (s *Threads) ids(ctx context.Context, query string, args ...any) ([]thole.ThreadID, error) {
	return viewOne(ctx, s, func(tx *sqldb.Tx) ([]thole.ThreadID, error) {
		return sqldb.All(tx, scanID[thole.ThreadID], query, args...)
	})
}

// Due implements thread.Store.
func (s *Threads) Due(ctx context.Context, now time.Time, limit int) ([]thole.ThreadID, error) {
	return s.ids(ctx, `select distinct thread_id from asks where state = 'pending' and deadline > 0 and deadline <= $1 limit $2 + 0`,
		thole.Millis(now), int64(limit))
}

// Busy implements thread.Store.
func (s *Threads) Busy(ctx context.Context, after thole.ThreadID, limit int) ([]thole.ThreadID, error) {
	return s.ids(ctx, `select id from threads where open_turn <> '' and id > $1 order by id limit $2 + 0`, after, int64(limit))
}

// Resting implements thread.Store.
func (s *Threads) Resting(ctx context.Context, before time.Time, limit int) ([]thole.ThreadID, error) {
	return s.ids(ctx, `select id from threads where updated_at < $1 and open_turn = '' and floor < seq order by updated_at limit $2 + 0`,
		thole.Millis(before), int64(limit))
}

// Ephemeral implements thread.Store.
func (s *Threads) Ephemeral(ctx context.Context, before time.Time, limit int) ([]thole.ThreadID, error) {
	return s.ids(ctx, `select id from threads where ephemeral and updated_at < $1 and open_turn = '' order by updated_at limit $2 + 0`,
		thole.Millis(before), int64(limit))
}
