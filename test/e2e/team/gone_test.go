package team

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// id is what the others call a server.
func (tm *team) id(i int) string {
	tm.t.Helper()
	text, err := os.ReadFile(filepath.Join(tm.homes[i].Dir, "server.id"))
	if err != nil {
		tm.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// count is a number in the database.
func (tm *team) count(sql string, args ...any) (n int) {
	tm.t.Helper()
	if err := connect(tm.t, tm.dsn).QueryRow(tm.t.Context(), sql, args...).Scan(&n); err != nil {
		tm.t.Fatal(err)
	}
	return n
}

// end is the end of a server's machine: of the server, and of the executors on it.
func (tm *team) end(i int) {
	tm.t.Helper()
	tm.servers[i].kill()
	ctx, cancel := context.WithTimeout(tm.t.Context(), time.Minute)
	defer cancel()
	d := local.New(local.Config{Root: filepath.Join(tm.homes[i].Dir, "x"), Binary: tm.homes[i].Binary})
	all, err := d.List(ctx)
	for _, x := range all {
		if err == nil {
			err = d.Stop(ctx, x.ID)
		}
	}
	if err != nil {
		tm.t.Fatal(err)
	}
}

// items are those of a run, as JSON.
func (tm *team) items(b *browser, at int, r turn) string {
	tm.t.Helper()
	var items json.RawMessage
	tm.ask(b, at, "GET", "/runs/"+r.ID+"/items", nil, &items)
	return string(items)
}

// TestAServerThatIsGone: a machine ends for good in the middle of a turn. Nobody goes on with its
// threads while its executors might still run; afterwards another server does, with the files of the
// last sync, and says so once.
func TestAServerThatIsGone(t *testing.T) {
	if os.Getenv("THOLE_SOAK") == "" {
		t.Skip("long: make soak")
	}
	tm := newTeam(t, 2, "")
	me := tm.servers[0].login()
	thread, _ := run(t, tm.homes[0], 0, "-q", "thread", "start", "--empty", "--profile", "full")
	tm.over(me, 0, tm.send(me, 0, thread, "sim: write a.txt saved"))
	run(t, tm.homes[0], 0, "executor", "sync", thread)
	if tm.count(`select count(*) from executors where thread_id = $1 and state = 'running' and engine = 'local:' || $2`, thread, tm.id(0)) == 0 {
		tm.servers[0], tm.servers[1] = tm.servers[1], tm.servers[0] // it went to the other one
		tm.homes[0], tm.homes[1] = tm.homes[1], tm.homes[0]
	}
	broken := tm.send(me, 1, thread, "sim: wait 2s ;; say went on")
	poll.Until(t, "the turn to run", func() bool {
		return tm.count(`select count(*) from turn_queue where turn_id = $1 and state = 'leased' and lease_owner = $2`, broken.ID, tm.id(0)) == 1
	})
	tm.end(0)
	tm.proxy.set(tm.servers[1])

	// Its files cannot be had, and nothing says that there are none.
	if got := tm.ask(me, 1, "GET", "/sessions/"+thread+"/changes", nil, nil); got < 500 {
		t.Errorf("changes of a server that does not answer: %d", got)
	}
	if _, errs := run(t, tm.homes[1], 7, "thread", "diff", thread); !strings.Contains(errs, tm.id(0)) {
		t.Errorf("thread diff: %s", errs)
	}
	if n := tm.count(`select count(*) from executors where thread_id = $1 and state <> 'deleted' and engine <> 'local:' || $2`, thread, tm.id(0)); n != 0 {
		t.Errorf("%d executors of the thread next to one that may still run", n)
	}

	if _, err := connect(t, tm.dsn).Exec(t.Context(), `update servers set heartbeat_at = heartbeat_at - 3600000 where id = $1`, tm.id(0)); err != nil { // an hour passes
		t.Fatal(err)
	}
	if r := tm.over(me, 1, broken); r.Outcome != "completed" {
		t.Errorf("the turn that the machine took along: %+v", r)
	}
	next := tm.over(me, 1, tm.send(me, 1, thread, "sim: run cat a.txt"))
	if got := tm.items(me, 1, next); next.Outcome != "completed" || !strings.Contains(got, "saved") {
		t.Errorf("the files on the other server: %+v %s", next, got)
	}
	said := strings.Count(tm.items(me, 1, broken)+tm.items(me, 1, next), "is gone; it goes on with the files as they were saved")
	if said != 1 {
		t.Errorf("that the server is gone is said %d times: %s", said, tm.items(me, 1, broken))
	}
}

// TestRolesAndDraining: each server does what its roles say; one that is stopped under load gives
// its leases back at once and takes no more, and every turn is done once.
func TestRolesAndDraining(t *testing.T) {
	if os.Getenv("THOLE_SOAK") == "" {
		t.Skip("long: make soak")
	}
	roles := func(of string) string { return "[server]\nroles = [" + of + "]\n" }
	tm := newTeamOf(t, []string{roles(`"api"`), roles(`"dispatcher", "delivery"`), roles(`"dispatcher", "sweeper"`)})
	tm.proxy.set(tm.servers[0])
	me := tm.servers[0].login()
	for at, want := range []int{200, 503, 503} {
		if got := tm.ask(me, at, "GET", "/sessions", nil, nil); got != want {
			t.Errorf("/sessions of server %d: %d", at, got)
		}
		if got := tm.ask(me, at, "GET", "/readyz", nil, nil); got != 200 {
			t.Errorf("/readyz of server %d: %d", at, got)
		}
	}
	const n = 6
	var sessions [n]string
	var runs [n]turn
	for i := range n {
		sessions[i] = tm.session(me, 0, "full")
		runs[i] = tm.send(me, 0, sessions[i], "sim: run echo once >> log.txt ;; wait 3s ;; say done")
	}
	stopped := tm.id(1)
	poll.Until(t, "turns on both", func() bool {
		return tm.count(`select count(*) from turn_queue where state = 'leased' and lease_owner = $1`, stopped) > 0 &&
			tm.count(`select count(*) from turn_queue where state = 'leased' and lease_owner = $1`, tm.id(2)) > 0
	})
	if got := tm.count(`select count(*) from turn_queue where lease_owner = $1`, tm.id(0)); got != 0 {
		t.Errorf("a server without dispatcher has %d leases", got)
	}
	_ = tm.servers[1].cmd.Process.Signal(syscall.SIGTERM)
	tm.servers[1].stop()
	if got := tm.count(`select count(*) from turn_queue where state = 'leased' and lease_owner = $1`, stopped); got != 0 {
		t.Errorf("%d leases of a server that was drained", got)
	}
	if got := tm.count(`select count(*) from servers where id = $1 and departed`, stopped); got != 1 {
		t.Error("a server that was drained did not leave")
	}
	late := tm.session(me, 0, "full") // for the one that is left
	if r := tm.over(me, 0, tm.send(me, 0, late, "sim: say late")); r.Outcome != "completed" {
		t.Errorf("a turn while one server is away: %+v", r)
	}
	tm.start(1)
	tm.proxy.set(tm.servers[0])
	for i := range n {
		if r := tm.over(me, 0, runs[i]); r.Outcome != "completed" {
			t.Errorf("session %d: %+v", i, r)
		}
		r := tm.over(me, 0, tm.send(me, 0, sessions[i], "sim: run echo there are $(grep -c once log.txt)"))
		if got := tm.items(me, 0, r); !strings.Contains(got, "there are 1") {
			t.Errorf("session %d was lost or done twice: %s", i, got)
		}
	}

	// A result that is reported where nothing is delivered is delivered by the server that does.
	id, _ := run(t, tm.homes[0], 0, "-q", "job", "submit", "--thread-id", late, "--task-kind", "test")
	run(t, tm.homes[0], 0, "job", "complete", strings.Fields(id)[0], "--summary", fmt.Sprintf("result %d", n))
	poll.Until(t, "the result in the thread", func() bool {
		out, _ := run(t, tm.homes[0], 0, "thread", "show", late)
		return strings.Contains(out, fmt.Sprintf("result %d", n))
	})
}
