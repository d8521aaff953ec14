package team

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// recorded makes the database keep every change of a lease, and under which lease the events of
// runs were appended.
const recorded = `
create table lease_history (n bigserial primary key, what text, turn text, thread text, state text, token text, was_state text, was_token text, was_until bigint, at bigint);
create function record_lease() returns trigger as $$ begin
	insert into lease_history (what, turn, thread, state, token, was_state, was_token, was_until, at)
	values ('lease', new.turn_id, new.thread_id, new.state, new.lease_token, old.state, old.lease_token, old.lease_until, (extract(epoch from clock_timestamp()) * 1000)::bigint);
	return new; end $$ language plpgsql;
create trigger record_lease after update on turn_queue for each row
	when (old.lease_token <> new.lease_token or old.state <> new.state) execute function record_lease();
create function record_event() returns trigger as $$ begin
	insert into lease_history (what, turn, thread, state, token, was_state, was_token, was_until, at)
	select new.kind, new.turn_id, new.thread_id, q.state, q.lease_token, '', '', 0, 0 from turn_queue q where q.turn_id = new.turn_id;
	return new; end $$ language plpgsql;
create trigger record_event after insert on thread_events for each row when (new.executor_id <> '') execute function record_event();`

type change struct {
	N                                                    int64
	What, Turn, Thread, State, Token, WasState, WasToken string
	WasUntil, At                                         int64
}

func history(t *testing.T, dsn string) []change {
	t.Helper()
	conn := connect(t, dsn)
	rows, err := conn.Query(t.Context(), `select n, what, turn, thread, state, token, was_state, was_token, was_until, at from lease_history order by n`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[change])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// faults are what no history of leases may have: two holders at a time, a token that comes back, a
// turn that goes on after it was done, or an event of a run that nobody held.
func faults(all []change) (out []string) {
	holder, used, done := map[string]string{}, map[string]string{}, map[string]bool{} // by thread, token and turn
	fault := func(c change, format string, args ...any) {
		out = append(out, fmt.Sprintf("%d: turn %s: ", c.N, c.Turn)+fmt.Sprintf(format, args...))
	}
	for _, c := range all {
		if c.What != "lease" {
			if c.State != "leased" {
				fault(c, "%s of a run while the turn was %s", c.What, c.State)
			}
			continue
		}
		if done[c.Turn] {
			fault(c, "%s after it was done", c.State)
		}
		done[c.Turn] = done[c.Turn] || c.State == "done"
		if c.WasState == "leased" && holder[c.Thread] == c.WasToken {
			delete(holder, c.Thread)
		}
		if c.State != "leased" {
			continue
		}
		if c.WasState == "leased" {
			fault(c, "lease %s was taken from %s", c.Token, c.WasToken)
		}
		if by := holder[c.Thread]; by != "" {
			fault(c, "lease %s next to %s of the same thread", c.Token, by)
		}
		if turn, again := used[c.Turn+c.Token]; again {
			fault(c, "token %s of %s came back", c.Token, turn)
		}
		holder[c.Thread], used[c.Turn+c.Token] = c.Token, c.Turn
	}
	return out
}

// TestTheCheckerSeesWhatIsWrong: a real history with one wrong step in it is refused, for each kind
// of wrong step.
func TestTheCheckerSeesWhatIsWrong(t *testing.T) {
	dsn := lab.Postgres(t)
	h := home.New(t)
	file := configured(t, h.Dir, dsn, nil, "", "")
	run(t, h, 0, "db", "migrate", "--config", file)
	conn := connect(t, dsn)
	do := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	do(recorded)
	insert := func(turn string) {
		do(`insert into turn_queue (turn_id, kind, thread_id, user_id, seq, priority, state, head, waiting, cancel, attempt, available_at, lease_token, lease_owner, lease_until, last_error, created_at, done_at)
			values ('` + turn + `', 'turn', 'thread-` + turn + `', 'u', 1, 0, 'ready', true, false, false, 0, 0, '', '', 0, '', 1, 0)`)
	}
	lease := func(turn, token string) {
		do(`update turn_queue set state = 'leased', lease_token = '` + token + `', lease_owner = 's', lease_until = 1 where turn_id = '` + turn + `'`)
	}
	back := func(turn string) {
		do(`update turn_queue set state = 'ready', lease_token = '', lease_owner = '' where turn_id = '` + turn + `'`)
	}
	for what, c := range map[string]struct {
		act  func(turn string)
		want string
	}{
		"right":   {func(turn string) { lease(turn, "1"); back(turn); lease(turn, "2") }, ""},
		"stolen":  {func(turn string) { lease(turn, "1"); lease(turn, "2") }, "was taken from"},
		"revived": {func(turn string) { lease(turn, "1"); back(turn); lease(turn, "1") }, "came back"},
		"undone": {func(turn string) {
			lease(turn, "1")
			do(`update turn_queue set state = 'done', lease_token = '', done_at = 1 where turn_id = '` + turn + `'`)
			do(`update turn_queue set state = 'ready', done_at = 0 where turn_id = '` + turn + `'`)
		}, "after it was done"},
	} {
		do(`delete from lease_history`)
		insert(what)
		c.act(what)
		found := faults(history(t, dsn))
		if ok := slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, c.want) }); (c.want == "") != (len(found) == 0) || c.want != "" && !ok {
			t.Errorf("%s: %v", what, found)
		}
	}
	if found := faults([]change{{What: "item.completed", Turn: "t", State: "ready"}}); len(found) != 1 {
		t.Errorf("an event that nobody held: %v", found)
	}
}
