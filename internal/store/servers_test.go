package store_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/queue"
	"github.com/tholehq/thole/internal/roster"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
)

func aServer(id, place, run string) roster.Server {
	return roster.Server{ID: id, Place: place, Run: run, Version: "v", Protocol: roster.Protocol, Roles: []roster.Role{roster.Sweeper, roster.Dispatcher}, Objects: "s3:x", Orphans: time.Minute}
}

// silent makes the last heartbeat of a server older.
func silent(t *testing.T, db *store.DB, id string, by time.Duration) {
	t.Helper()
	mustUpdate(t, db, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`update servers set heartbeat_at = heartbeat_at - $2, joined_at = joined_at - $2 where id = $1`, id, by.Milliseconds())
		return err
	})
}

func TestWhoMayJoinAStore(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		ctx, db := t.Context(), open(t)
		s := db.Servers()
		refused := func(why string, who roster.Server) {
			t.Helper()
			if err := s.Join(ctx, who); thole.CodeOf(err) != thole.CodeConflict || thole.HintOf(err) == "" || !strings.Contains(err.Error(), why) {
				t.Fatalf("%+v joined: %v", who, err)
			}
		}
		ok := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		change := func(who roster.Server, how func(*roster.Server)) roster.Server { how(&who); return who }
		ok(s.Join(ctx, aServer("a", "here", "1")))
		refused("a copy", aServer("a", "there", "1"))
		refused("objects.kind is dir", change(aServer("b", "there", "1"), func(s *roster.Server) { s.Objects = "dir:/b" }))
		refused("keeps objects at", change(aServer("b", "there", "1"), func(s *roster.Server) { s.Objects = "s3:other" }))
		refused("too far", change(aServer("b", "there", "1"), func(s *roster.Server) { s.Protocol += 2 }))
		ok(s.Join(ctx, change(aServer("b", "there", "1"), func(s *roster.Server) { s.Protocol++ }))) // the next version, while servers are replaced
		ok(s.Join(ctx, aServer("c", "elsewhere", "1")))
		ok(s.Join(ctx, aServer("a", "here", "2")))
		if err := s.Beat(ctx, "a", "1"); !errors.Is(err, roster.ErrReplaced) {
			t.Fatalf("an earlier process of the home: %v", err)
		}
		for _, id := range []string{"a", "b", "c"} {
			run := map[string]string{"a": "2"}[id]
			ok(s.Beat(ctx, id, cmp.Or(run, "1")))
		}
		ok(s.Leave(ctx, "a", "1")) // not its own any more
		ok(s.Drain(ctx, "c", "1"))
		silent(t, db, "b", roster.DeadAfter+time.Second)
		list, err := s.List(ctx)
		ok(err)
		if len(list) != 3 || !list[0].Alive || list[1].Alive || !list[2].Draining || !list[2].Alive || !list[0].Has(roster.Sweeper) || list[0].Has(roster.API) {
			t.Fatalf("servers: %+v", list)
		}
		ok(s.Beat(ctx, "b", "1")) // it was away, and is a server again
		ok(s.Leave(ctx, "b", "1"))
		ok(s.Leave(ctx, "c", "1"))
		if err := s.Beat(ctx, "c", "1"); !errors.Is(err, roster.ErrReplaced) {
			t.Fatalf("one that left: %v", err)
		}
		// A server of a version that expects to be alone keeps the others out, also one that keeps files to itself.
		ok(s.Join(ctx, change(aServer("a", "here", "3"), func(s *roster.Server) { s.Protocol = 0 })))
		refused("expects to be alone", aServer("b", "there", "2"))
		ok(s.Join(ctx, change(aServer("a", "here", "4"), func(s *roster.Server) { s.Objects = "dir:/a" })))
		refused("keeps objects in a directory", aServer("b", "there", "2"))
		first, err1 := db.ID(ctx)
		again, err2 := db.ID(ctx)
		if err := errors.Join(err1, err2); err != nil || first == "" || first != again {
			t.Fatal(first, again, err)
		}
	})
}

// TestADutyHasOneHolder: until it is given back, or its holder was silent.
func TestADutyHasOneHolder(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		ctx, db := t.Context(), open(t)
		s := db.Servers()
		take := func(holder string, want bool) {
			t.Helper()
			if ours, err := s.Take(ctx, "sweep", holder, time.Minute); err != nil || ours != want {
				t.Fatalf("%s: %v, %v", holder, ours, err)
			}
		}
		take("a", true)
		take("b", false)
		take("a", true)
		if err := s.Drop(ctx, "sweep", "b"); err != nil {
			t.Fatal(err)
		}
		take("b", false)
		if err := s.Drop(ctx, "sweep", "a"); err != nil {
			t.Fatal(err)
		}
		take("b", true)
		mustUpdate(t, db, func(tx *sqldb.Tx) error {
			_, err := tx.Exec(`update duties set until = until - 61000`)
			return err
		})
		take("a", true)
		take("b", false)
	})
}

// TestWhatOneMachineHas is seen by its server alone: another cannot know how a process or a
// file of that machine is.
func TestWhatOneMachineHas(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		ctx, db := t.Context(), open(t)
		if err := db.Servers().Join(ctx, aServer("a", "here", "1")); err != nil {
			t.Fatal(err)
		}
		db.ServeAs("a")
		one := attachment.Attachment{ID: thole.AttachmentID(uuid(1)), User: thole.LocalUser, Home: "/codex", Thread: thole.ThreadID(uuid(2)), Kind: attachment.Endpoint, Address: "unix:///s", Trust: "strict-safe", State: attachment.Live, Epoch: 1}
		if err := db.Attachments().InsertAttachment(ctx, &one); err != nil {
			t.Fatal(err)
		}
		for server, want := range map[string]int{"a": 1, "b": 0} {
			db.ServeAs(server)
			if list, err := db.Attachments().Attachments(ctx, true); err != nil || len(list) != want {
				t.Errorf("server %s sees %d terminals, %v", server, len(list), err)
			}
		}
	})
}

func TestNoticesAndTicketsAreUsedOnce(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		ctx, db := t.Context(), open(t)
		for _, want := range []bool{true, false} {
			if ours, err := db.TakeNotice(ctx, "e"); err != nil || ours != want {
				t.Errorf("notice: %v, %v", ours, err)
			}
		}
		if err := db.Tickets().Add(ctx, "h", "sealed", time.Minute, 1); err != nil {
			t.Fatal(err)
		}
		if err := db.Tickets().Add(ctx, "i", "sealed", time.Minute, 1); thole.CodeOf(err) != thole.CodeOverloaded {
			t.Errorf("more tickets than may wait: %v", err)
		}
		for _, want := range []string{"sealed", ""} {
			if got, err := db.Tickets().Use(ctx, "h"); err != nil || got != want {
				t.Errorf("ticket: %q, %v", got, err)
			}
		}
		if err := db.Tickets().Add(ctx, "h", "sealed", 0, 1); err != nil {
			t.Fatal(err)
		}
		if got, err := db.Tickets().Use(ctx, "h"); err != nil || got != "" {
			t.Errorf("a ticket that is too old: %q, %v", got, err)
		}
	})
}

// TestExecutorsBelongToAnEngine: no server sweeps or ends what is on another's machine,
// until that has been gone for longer than its executors outlive it.
func TestExecutorsBelongToAnEngine(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		ctx, db := t.Context(), open(t)
		mine, theirs := db.ExecutorsOn(roster.Engine("a")), db.ExecutorsOn(roster.Engine("b"))
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(db.Servers().Join(ctx, aServer("b", "there", "1")))
		row, err := theirs.Ensure(ctx, wantExecutor(1, 1))
		must(err)
		_, err = theirs.MarkRunning(ctx, row.ID)
		must(err)
		_, err = theirs.MarkRestored(ctx, row.ID)
		must(err)
		far := time.Now().Add(time.Hour)
		for _, list := range []func(context.Context, time.Time, int) ([]executor.Row, error){mine.Idle, mine.Old, mine.Stale} {
			if got, err := list(ctx, far, 10); err != nil || len(got) > 0 {
				t.Fatalf("another engine's executors are swept: %+v, %v", got, err)
			}
		}
		if got, err := theirs.Idle(ctx, far, 10); err != nil || len(got) != 1 {
			t.Fatalf("an engine's own executors: %+v, %v", got, err)
		}
		if got, err := mine.Live(ctx, "", 10); err != nil || len(got) > 0 {
			t.Fatalf("another engine's executors are reconciled: %+v, %v", got, err)
		}
		if ok, err := mine.MarkMissing(ctx, row.ID); ok || err != nil {
			t.Fatalf("an executor of another engine is said to be missing: %v, %v", ok, err)
		}
		must(db.Queue().Enqueue(ctx, queue.Item{Turn: thole.TurnID(uuid(5)), Thread: row.Thread, User: "u"}))
		claim := func(engine string) int {
			t.Helper()
			got, err := db.Queue().Claim(ctx, queue.Claim{Owner: engine, Engine: engine, Token: uuid(7), Max: 1, Lease: time.Hour})
			must(err)
			return len(got)
		}
		if n := claim(roster.Engine("a")); n != 0 {
			t.Fatal("a turn whose executor is elsewhere was claimed")
		}
		if _, err := mine.Ensure(ctx, wantExecutor(2, 1)); thole.CodeOf(err) != thole.CodeUnavailable {
			t.Fatalf("a second executor next to one that may run: %v", err)
		}
		if n := claim(roster.Engine("b")); n != 1 {
			t.Fatal("a turn was not claimed where its executor is")
		}
		if back, err := db.Queue().Abandon(ctx, "nobody"); err != nil || len(back) != 0 {
			t.Fatalf("abandon: %v, %v", back, err)
		}
		if back, err := db.Queue().Abandon(ctx, roster.Engine("b")); err != nil || len(back) != 1 {
			t.Fatalf("abandon: %v, %v", back, err)
		}
		silent(t, db, "b", roster.DeadAfter+time.Second)
		if n := claim(roster.Engine("a")); n != 0 {
			t.Fatal("a turn was claimed while the executor of a dead server may run")
		}
		silent(t, db, "b", time.Minute)
		if n := claim(roster.Engine("a")); n != 1 {
			t.Fatal("a turn of a server that is gone was not claimed")
		}
		next, err := mine.Ensure(ctx, wantExecutor(2, 1))
		must(err)
		old, err := mine.Get(ctx, row.ID)
		must(err)
		if next.ID == row.ID || next.Engine != roster.Engine("a") || old.State != executor.RowDeleted || old.SyncError == "" {
			t.Fatalf("taken over: %+v from %+v", next, old)
		}
	})
}

// TestStoppedExecutorsWaitForNobody: what was saved and stopped is taken over as soon as
// its server has left or died, and not before.
func TestStoppedExecutorsWaitForNobody(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		for name, end := range map[string]func(*testing.T, *store.DB){
			"left": func(t *testing.T, db *store.DB) {
				if err := db.Servers().Leave(t.Context(), "b", "1"); err != nil {
					t.Fatal(err)
				}
			},
			"died": func(t *testing.T, db *store.DB) { silent(t, db, "b", roster.DeadAfter+time.Second) },
		} {
			ctx, db := t.Context(), open(t)
			mine, theirs := db.ExecutorsOn(roster.Engine("a")), db.ExecutorsOn(roster.Engine("b"))
			err := db.Servers().Join(ctx, aServer("b", "there", "1"))
			row, err1 := theirs.Ensure(ctx, wantExecutor(1, 1))
			_, err2 := theirs.MarkRunning(ctx, row.ID)
			_, err3 := theirs.MarkRestored(ctx, row.ID)
			_, err4 := theirs.BeginSync(ctx, row.ID, "stop")
			_, err5 := theirs.EndSync(ctx, row.ID, uuid(8), nil)
			stopped, err6 := theirs.MarkStopped(ctx, row.ID)
			err7 := db.Queue().Enqueue(ctx, queue.Item{Turn: thole.TurnID(uuid(5)), Thread: row.Thread, User: "u"})
			if err := errors.Join(err, err1, err2, err3, err4, err5, err6, err7); err != nil || !stopped {
				t.Fatal(stopped, err)
			}
			claim := func() int {
				got, err := db.Queue().Claim(ctx, queue.Claim{Owner: "a", Engine: roster.Engine("a"), Token: uuid(7), Max: 1, Lease: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				return len(got)
			}
			if n := claim(); n != 0 {
				t.Fatalf("%s: taken from a server that is alive", name)
			}
			if _, err := mine.Ensure(ctx, wantExecutor(2, 1)); thole.CodeOf(err) != thole.CodeUnavailable {
				t.Fatalf("%s: a second executor next to that of a server that is alive: %v", name, err)
			}
			end(t, db)
			if n := claim(); n != 1 {
				t.Errorf("%s: the turn waits for an executor that was stopped", name)
			}
			if next, err := mine.Ensure(ctx, wantExecutor(2, 1)); err != nil || next.Engine != roster.Engine("a") {
				t.Errorf("%s: %+v, %v", name, next, err)
			}
		}
	})
}

type servers struct {
	*store.DB
	from *store.DB
	ctx  context.Context
}

func openServers(dir string, hook sqldb.Hook) (*servers, error) {
	s := &servers{ctx: context.Background()}
	now := func() time.Time { return platformStart }
	var err1, err2 error
	s.from, err1 = storetest.OpenAt(s.ctx, sqldb.Config{Path: dir + "/from/thole.db", Now: now})
	s.DB, err2 = storetest.OpenAt(s.ctx, sqldb.Config{Path: dir + "/to/thole.db", Hook: hook, Now: now})
	return s, errors.Join(err1, err2)
}

func (s *servers) Close() error { return errors.Join(s.from.Close(), s.DB.Close()) }

func (s *servers) State() (string, error) {
	return crash.Rows(s.DB, "servers", "users", "turn_queue", "duties", "notices", "tickets")
}

func (s *servers) Acts() []crash.Act {
	return []crash.Act{
		{Name: "move", Do: func() error { _, err := store.Move(s.ctx, s.from, s.DB, "home", "local:a"); return err }},
		{Name: "id", Do: func() error { _, err := s.ID(s.ctx); return err }},
		{Name: "join", Do: func() error { return s.Servers().Join(s.ctx, aServer("a", "here", "1")) }},
		{Name: "beat", Do: func() error { return s.Servers().Beat(s.ctx, "a", "1") }},
		{Name: "abandon", Set: func() error {
			err := s.Queue().Enqueue(s.ctx, queue.Item{Turn: thole.TurnID(uuid(1)), Thread: thole.ThreadID(uuid(1)), User: "u"})
			if err == nil {
				_, err = s.Queue().Claim(s.ctx, queue.Claim{Owner: "a", Token: "t", Max: 1, Lease: time.Hour})
			}
			return err
		}, Do: func() error { _, err := s.Queue().Abandon(s.ctx, "a"); return err }},
		{Name: "drain", Do: func() error { return s.Servers().Drain(s.ctx, "a", "1") }},
		{Name: "take duty", Do: func() error { _, err := s.Servers().Take(s.ctx, "d", "a", time.Minute); return err }},
		{Name: "drop duty", Do: func() error { return s.Servers().Drop(s.ctx, "d", "a") }},
		{Name: "notice", Do: func() error { _, err := s.TakeNotice(s.ctx, "e"); return err }},
		{Name: "ticket", Do: func() error { return s.Tickets().Add(s.ctx, "h", "s", time.Minute, 9) }},
		{Name: "use ticket", Do: func() error { _, err := s.Tickets().Use(s.ctx, "h"); return err }},
		{Name: "leave", Do: func() error { return s.Servers().Leave(s.ctx, "a", "1") }},
	}
}

// TestServersSurviveAKill: a move that was committed is found again and no other takes its
// place, and the home that had the store joins again at once.
func TestServersSurviveAKill(t *testing.T) {
	crash.Acts(t, openServers, func(t *testing.T, s *servers, done []string) {
		moved, err := store.Move(s.ctx, s.from, s.DB, "home", "local:a")
		if !slices.Contains(done, "id") && (err != nil || len(moved.Tables) == 0) {
			t.Errorf("after %v: %+v, %v", done, moved, err)
		}
		if slices.Contains(done, "move") {
			if _, err := store.Move(s.ctx, s.from, s.DB, "another", "local:b"); thole.CodeOf(err) != thole.CodeConflict {
				t.Errorf("another home was moved to the same place: %v", err)
			}
		}
		if err := s.Servers().Join(s.ctx, aServer("a", "here", "2")); err != nil {
			t.Errorf("after %v: %v", done, err)
		}
		if err := s.Servers().Beat(s.ctx, "a", "2"); err != nil {
			t.Errorf("after %v: %v", done, err)
		}
	})
}
