package store

import (
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/thread"
)

// asJSON encodes a column. The types it is given always encode.
func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("store: encode column: " + err.Error())
	}
	return string(b)
}

// jsonOrNone is asJSON with "" for nil.
func jsonOrNone[T any](v *T) string {
	if v == nil {
		return ""
	}
	return asJSON(v)
}

// listOrNone is asJSON with "" for an empty list.
func listOrNone[T any](list []T) string {
	if len(list) == 0 {
		return ""
	}
	return asJSON(list)
}

func fromJSON(s string, v any) error {
	if s == "" {
		return nil
	}
	return json.Unmarshal([]byte(s), v)
}

// instant is the column form of a time: 0 for none.
func instant(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return thole.Millis(t)
}

func putTurns(tx *sqldb.Tx, id thole.ThreadID, c *thread.Commit) error {
	for _, t := range c.Turns {
		key := ""
		if t.Seq > c.Expected {
			key = c.Key
		}
		_, err := tx.Exec(`insert into turns (thread_id, turn_id, number, seq, input, client_id, actor, settings, phase, outcome,
				error, usage, executor_id, trace, interrupted, stop, deferred, reply, run, steers, idem_key, created_at, started_at, ended_at, output_schema, native_id)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26)
			on conflict (thread_id, turn_id) do update set phase = excluded.phase, outcome = excluded.outcome,
				error = excluded.error, usage = excluded.usage, executor_id = excluded.executor_id,
				interrupted = excluded.interrupted, stop = excluded.stop, deferred = excluded.deferred, reply = excluded.reply,
				run = excluded.run, steers = excluded.steers, started_at = excluded.started_at, ended_at = excluded.ended_at,
				native_id = excluded.native_id`,
			id, t.ID, int64(t.Number), int64(t.Seq), asJSON(t.Input), t.ClientID, asJSON(t.Actor), asJSON(t.Settings),
			string(t.Phase), string(t.Outcome), jsonOrNone(t.Error), asJSON(t.Usage), t.Executor, t.Trace, t.Interrupted,
			jsonOrNone(t.Stop), t.Deferred, t.Reply, int64(t.Run), asJSON(t.Steers), key,
			thole.Millis(t.Created), instant(t.Stamp.Started), instant(t.Stamp.Ended), string(t.Schema), c.Row.Thread.NativeID)
		if err != nil {
			return err
		}
	}
	for _, p := range c.Phases {
		if err := tx.Must("turn has its outcome", `update turns set phase = $3 where thread_id = $1 and turn_id = $2 and outcome <> ''`,
			id, p.Turn, string(p.Phase)); err != nil {
			return err
		}
	}
	return nil
}

func putItems(tx *sqldb.Tx, id thole.ThreadID, c *thread.Commit) error {
	for _, r := range c.DropItems {
		if _, err := tx.Exec(`delete from thread_items where thread_id = $1 and turn_id = $2 and item_id = $3`, id, r.Turn, r.Item.ID); err != nil {
			return err
		}
		if _, err := tx.Exec(`delete from item_outputs where thread_id = $1 and turn_id = $2 and item_id = $3`, id, r.Turn, r.Item.ID); err != nil {
			return err
		}
	}
	for _, r := range c.Items {
		_, err := tx.Exec(`insert into thread_items (thread_id, item_id, turn_id, seq, kind, is_open, body, search)
			values ($1, $2, $3, $4, $5, $6, $7, $8)
			on conflict (thread_id, turn_id, item_id) do update set is_open = excluded.is_open, body = excluded.body, search = excluded.search`,
			id, r.Item.ID, r.Turn, int64(r.Seq), string(r.Item.Kind), r.Open, asJSON(r.Item), searchText(r.Item))
		if err != nil {
			return err
		}
	}
	for _, item := range c.Closed {
		if _, err := tx.Exec(`delete from thread_drafts where thread_id = $1 and item_id = $2`, id, item); err != nil {
			return err
		}
	}
	return nil
}

// maxSearch bounds the searchable text of one item.
const maxSearch = 8 << 10

// searchText is the column that a search looks into.
func searchText(it event.Item) string {
	text := thread.SaidText(it)
	if len(text) > maxSearch {
		text = text[:maxSearch]
	}
	return thread.FoldText(text)
}

// plain is a text without what PostgreSQL takes into none: errors may name files of
// any name.
func plain(s string) string { return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "") }

func putAsks(tx *sqldb.Tx, id thole.ThreadID, c *thread.Commit) error {
	for _, r := range c.Asks {
		actor := ""
		if r.State != event.AskPending {
			actor = asJSON(r.Actor)
		}
		ok, err := tx.ExecOne(`insert into asks (thread_id, ask_id, turn_id, kind, state, body, answer, actor, deadline, asked_at, resolved_at, receipt)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
			on conflict (thread_id, ask_id) do update set state = excluded.state, answer = excluded.answer, actor = excluded.actor,
				resolved_at = excluded.resolved_at, receipt = excluded.receipt
				where asks.state = 'pending' or excluded.state = 'self_answered' and asks.state <> 'self_answered'`,
			id, r.Ask.ID, r.Turn, string(r.Ask.Kind), string(r.State), asJSON(r.Ask), jsonOrNone(r.Answer), actor,
			instant(r.Ask.Deadline), thole.Millis(r.Asked), instant(r.Resolved), string(r.Receipt))
		if err != nil {
			return err
		}
		if !ok {
			return thole.Errorf(thole.CodeInternal, "ask %s was settled before", r.Ask.ID)
		}
	}
	return nil
}

func putTodos(tx *sqldb.Tx, id thole.ThreadID, c *thread.Commit) error {
	if c.Retodo {
		if _, err := tx.Exec(`delete from todos where thread_id = $1`, id); err != nil {
			return err
		}
	}
	for _, t := range c.Todos {
		_, err := tx.Exec(`insert into todos (thread_id, todo_id, content, state, position) values ($1, $2, $3, $4, $5)
			on conflict (thread_id, todo_id) do update set content = excluded.content, state = excluded.state, position = excluded.position`,
			id, t.ID, asJSON(t.Content), string(t.State), int64(t.Order))
		if err != nil {
			return err
		}
	}
	return nil
}

func putQueue(tx *sqldb.Tx, id thole.ThreadID, c *thread.Commit) error {
	for _, m := range c.Unqueued {
		if _, err := tx.Exec(`delete from thread_queue where thread_id = $1 and message_id = $2`, id, m); err != nil {
			return err
		}
	}
	for _, m := range c.Queued {
		_, err := tx.Exec(`insert into thread_queue (thread_id, message_id, position, input, client_id, actor, created_at)
			values ($1, $2, coalesce((select max(position) from thread_queue where thread_id = $1), 0) + 1, $3, $4, $5, $6)
			on conflict (thread_id, message_id) do update set input = excluded.input`,
			id, m.ID, asJSON(m.Input), m.ClientID, asJSON(m.Actor), thole.Millis(m.Created))
		if err != nil {
			return err
		}
	}
	for i, m := range c.Order {
		if _, err := tx.Exec(`update thread_queue set position = $3 where thread_id = $1 and message_id = $2`, id, m, int64(i+1)); err != nil {
			return err
		}
	}
	return nil
}

// The runtime version is the executor's, which has one for life. A turn's files are
// not saved while the last sync of its executor failed and none kept them before.
const turnColumns = `turn_id, thread_id, number, seq, input, client_id, actor, settings, phase, outcome, error, usage,
	executor_id, trace, interrupted, stop, deferred, reply, run, steers, created_at, started_at, ended_at, spent, output_schema, native_id,
	coalesce((select runtime_version from workspace_runtimes where workspace_runtimes.executor_id = turns.executor_id), ''),
	coalesce((select case when sync_error = '' then 'the sync failed' else sync_error end from executors
		where executors.id = turns.executor_id and sync_status = 'failed' and turns.phase in ('succeeded', 'failed', 'canceled')
		and not exists (select 1 from workspace_turns kept where kept.thread_id = turns.thread_id and kept.turn_id = turns.turn_id)), '')`

func scanTurn(rows *sql.Rows) (t fold.Turn, err error) {
	var input, actor, settings, terr, usage, stop, steers, spent, schema string
	var created, started, ended int64
	err = rows.Scan(&t.ID, &t.Thread, &t.Number, &t.Seq, &input, &t.ClientID, &actor, &settings, &t.Phase, &t.Outcome, &terr, &usage,
		&t.Executor, &t.Trace, &t.Interrupted, &stop, &t.Deferred, &t.Reply, &t.Run, &steers, &created, &started, &ended, &spent, &schema, &t.Native, &t.Runtime, &t.Unsaved)
	for _, f := range []struct {
		column string
		into   any
	}{{input, &t.Input}, {actor, &t.Actor}, {settings, &t.Settings}, {terr, &t.Error}, {usage, &t.Usage}, {stop, &t.Stop}, {steers, &t.Steers}} {
		if err == nil {
			err = fromJSON(f.column, f.into)
		}
	}
	if err == nil {
		t.Spent, err = spentOf(spent)
	}
	if schema != "" {
		t.Schema = json.RawMessage(schema)
	}
	t.Created, t.Stamp.Started, t.Stamp.Ended = thole.FromMillis(created), thole.FromMillis(started), thole.FromMillis(ended)
	return t, err
}

const threadColumns = `id, app_id, project_id, user_id, name, preview, settings, native_id, origin, source, client, ephemeral,
	archived, forked_from, parent_id, created_at, updated_at, seq, floor, turns, open_turn, approvals, inputs, last_outcome,
	paused, step_seq, usage, files, tools, goal, pinned, retell, git`

func scanThread(rows *sql.Rows) (r fold.Row, err error) {
	t := &r.Thread
	var settings, usage, files, tools, goal, git string
	var created, updated int64
	err = rows.Scan(&t.ID, &t.Owner.App, &t.Owner.Project, &t.Owner.User, &t.Name, &t.Preview, &settings, &t.NativeID, &t.Origin,
		&t.Source, &t.Client, &t.Ephemeral, &t.Archived, &t.ForkedFrom, &t.Parent, &created, &updated, &t.Seq, &t.Floor, &t.Turns,
		&t.Open, &r.Approvals, &r.Inputs, &r.LastOutcome, &r.Paused, &r.Step, &usage, &files, &tools, &goal, &t.Pinned, &t.Retell, &git)
	if err == nil {
		err = fromJSON(settings, &t.Settings)
	}
	if err == nil {
		err = fromJSON(usage, &t.Usage)
	}
	if err == nil {
		err = fromJSON(files, &t.Files)
	}
	if err == nil {
		err = fromJSON(tools, &t.Tools)
	}
	if err == nil {
		err = fromJSON(goal, &t.Goal)
	}
	if err == nil {
		err = fromJSON(git, &t.Git)
	}
	t.Created, t.Updated = thole.FromMillis(created), thole.FromMillis(updated)
	return r, err
}

func scanItem(rows *sql.Rows) (fold.ItemRecord, error) { return scanItemWith(rows) }

// scanItemWith scans an item and the columns that follow it.
func scanItemWith(rows *sql.Rows, more ...any) (r fold.ItemRecord, err error) {
	var body string
	if err = rows.Scan(append([]any{&r.Turn, &r.Seq, &r.Open, &body}, more...)...); err == nil {
		err = fromJSON(body, &r.Item)
	}
	return r, err
}

func scanAsk(rows *sql.Rows) (r fold.AskRecord, err error) { return scanAskWith(rows) }

// scanAskWith scans an ask and the columns that follow it.
func scanAskWith(rows *sql.Rows, more ...any) (r fold.AskRecord, err error) {
	var body, answer, actor string
	var asked, resolved int64
	err = rows.Scan(append([]any{&r.Thread, &r.Turn, &r.State, &body, &answer, &actor, &asked, &resolved, &r.Receipt}, more...)...)
	if err == nil {
		err = fromJSON(body, &r.Ask)
	}
	if err == nil {
		err = fromJSON(answer, &r.Answer)
	}
	if err == nil {
		err = fromJSON(actor, &r.Actor)
	}
	r.Asked, r.Resolved = thole.FromMillis(asked), thole.FromMillis(resolved)
	return r, err
}

func scanEvent(rows *sql.Rows) (e event.Event, err error) {
	var actor, data string
	var at int64
	if err = rows.Scan(&e.Thread, &e.Seq, &e.ID, &e.Kind, &e.Turn, &e.Executor, &e.Trace, &actor, &at, &data); err == nil {
		err = fromJSON(actor, &e.Actor)
	}
	if err == nil {
		err = fromJSON(data, &e.Data)
	}
	e.Time = thole.FromMillis(at)
	return e, err
}

func scanTodo(rows *sql.Rows) (t event.Todo, err error) {
	var content string
	if err = rows.Scan(&t.ID, &content, &t.State, &t.Order); err == nil {
		err = fromJSON(content, &t.Content)
	}
	return t, err
}

func scanMessage(rows *sql.Rows) (m event.Message, err error) {
	var input, actor string
	var created int64
	if err = rows.Scan(&m.ID, &m.Thread, &input, &m.ClientID, &actor, &created); err == nil {
		err = fromJSON(input, &m.Input)
	}
	if err == nil {
		err = fromJSON(actor, &m.Actor)
	}
	m.Created = thole.FromMillis(created)
	return m, err
}
