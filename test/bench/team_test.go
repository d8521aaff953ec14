//go:build linux

package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bufio"

	"github.com/jackc/pgx/v5"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/thread"
)

// crowd is a server on PostgreSQL with users who have 100 threads each, all like one that an agent
// really worked in. The first user is the one of this machine.
type crowd struct {
	*httpSide
	dsn   string
	token string
	like  thole.ThreadID
}

// newCrowd copies the rows of one thread inside of the database, until each user has 100.
func newCrowd(t *testing.T, users int) *crowd {
	t.Helper()
	ctx := t.Context()
	dsn := lab.Postgres(t)
	db, err := store.Open(ctx, sqldb.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	c := &crowd{httpSide: &httpSide{tholetest.New(t, tholetest.DB(db)).Site(), t}, dsn: dsn}
	c.token, c.like = c.Token, c.create()
	for turn := 0; ; turn++ {
		c.chat(c.like, "sim: say "+strings.Repeat("words of a usual length ", 10)+" ;; run echo built ;; todo read | write ;; say done")
		th, err := c.Threads.Get(ctx, thole.LocalActor, c.like)
		if err != nil {
			t.Fatal(err)
		}
		if th.Seq >= 50 {
			break
		}
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	do := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(ctx, sql, args...); err != nil {
			t.Fatalf("%.200s: %v", sql, err)
		}
	}
	do(`set synchronous_commit = off`)
	do(`create function derived(text) returns text immutable language sql as $$ select regexp_replace(md5($1), '^(.{8})(.{4}).(.{3}).(.{3})(.{12})$', '\1-\2-7\3-8\4-\5') $$`)
	do(`create temp table copies as select i, derived('t' || i) as id, case when i % $1 = 0 then '`+string(thole.LocalUser)+`' else derived('u' || i % $1) end as owner from generate_series(1, $2::int) i`, users, 100*users)
	do(`insert into users (id, login, name, state, created_at) select distinct owner, owner, 'a user', 'active', 0 from copies on conflict do nothing`)
	for _, table := range []string{"threads", "turns", "thread_items", "thread_events", "turn_usage"} {
		rows, err := conn.Query(ctx, `select column_name from information_schema.columns where table_schema = 'public' and table_name = $1`, table)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		values := slices.Clone(columns)
		for i, name := range values {
			switch {
			case name == "thread_id" || name == "id" && table == "threads":
				values[i] = "c.id"
			case name == "turn_id":
				values[i] = "case when r.turn_id = '' then '' else derived(r.turn_id || c.i) end"
			case name == "user_id":
				values[i] = "c.owner"
			case name == "updated_at" || name == "created_at" || name == "settled_at":
				values[i] = "r." + name + " + c.i"
			default:
				values[i] = "r." + name
			}
		}
		of := "r.thread_id"
		if table == "threads" {
			of = "r.id"
		}
		do(`insert into `+table+` (`+strings.Join(columns, ", ")+`) select `+strings.Join(values, ", ")+` from `+table+` r, copies c where `+of+` = $1`, c.like)
	}
	do(`analyze`)
	return c
}

func (c *crowd) count(table string) (n int) {
	c.t.Helper()
	conn, err := pgx.Connect(c.t.Context(), c.dsn)
	if err == nil {
		err = conn.QueryRow(c.t.Context(), `select count(*) from `+table).Scan(&n)
		_ = conn.Close(c.t.Context())
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// read asks once and returns how long it took, in milliseconds.
func (c *crowd) read(path string) float64 {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), "GET", c.URL+strings.ReplaceAll(path, "ID", string(c.like)), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	from := time.Now()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		c.t.Fatalf("%s: %d %s %v", path, res.StatusCode, text, err)
	}
	return float64(time.Since(from).Microseconds()) / 1000
}

func p95(all []float64) float64 {
	s := slices.Sorted(slices.Values(all))
	return s[len(s)*95/100]
}

// TestLargeTeam asks every list and page of a server with many users next to one with a single user,
// who has as many threads as each of the many.
func TestLargeTeam(t *testing.T) {
	users, asks := 3, 10
	if Long() {
		users, asks = 1000, 60
	}
	alone, many := newCrowd(t, 1), newCrowd(t, users)
	size := fmt.Sprintf("%d users, %d threads, %d events", many.count("users"), many.count("threads"), many.count("thread_events"))
	t.Log(size)
	paths := []string{
		"/sessions", "/sessions?sort=created", "/sessions?search=usual", "/sessions?archived=true", "/api/chat-history", "/inbox", "/human-loop", "/search?query=usual", "/usage", "/budgets", "/vault/items", "/shares",
		"/sessions/ID", "/sessions/ID/snapshot", "/sessions/ID/messages", "/sessions/ID/items", "/sessions/ID/runs", "/sessions/ID/tool-executions", "/sessions/ID/todos", "/sessions/ID/queue", "/sessions/ID/export", "/api/chat-history/ID",
	}
	worst, ratio := "", 0.0
	measure := func(path string, n int) (ours, theirs float64) {
		var with, without []float64
		for range n {
			with, without = append(with, many.read(path)), append(without, alone.read(path))
		}
		return p95(with), p95(without)
	}
	for _, path := range paths {
		many.read(path) // warm
		alone.read(path)
		ours, theirs := measure(path, asks)
		t.Logf("%-40s p95 %7.2f ms, alone %7.2f ms, ratio %.2f", path, ours, theirs, ours/theirs)
		if ours/theirs > ratio {
			worst, ratio = path, ours/theirs
		}
	}
	if !Long() { // a few asks of a small team say nothing but that they are answered
		return
	}
	var ours, theirs []float64
	pair := func() { a, b := measure(worst, asks); ours, theirs = append(ours, a), append(theirs, b) }
	next := func(of *[]float64) func() float64 {
		return func() float64 {
			if len(*of) == 0 {
				pair()
			}
			v := (*of)[0]
			*of = (*of)[1:]
			return v
		}
	}
	Case{
		Name: "http: the list or page of a large team that is slowest next to that of one user, p95", Unit: "ms",
		Peer: "the same of a server with one user and as many threads of theirs", Promise: 2, Loose: 8,
		Ours: next(&ours), Theirs: next(&theirs),
		Note: fmt.Sprintf("PostgreSQL with %s. %d lists and pages were asked, %d times each in turns; the slowest of them is %s.", size, len(paths), asks, worst),
	}.Run(t)
}

// TestIdleStreams opens streams on which nothing happens; their readers live in another process.
func TestIdleStreams(t *testing.T) {
	n := 500
	if Long() {
		n = 10_000
	}
	s := newHTTPSide(t)
	id := s.create()
	used := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapInuse + m.StackInuse)
	}
	before := used()
	child := exec.Command(os.Args[0], "-test.run=TestEventReaderChild", "-test.v")
	child.Env = []string{"THOLE_READERS=" + strconv.Itoa(n), "THOLE_URL=" + s.URL + "/sessions/" + string(id) + "/events", "THOLE_TOKEN=" + s.Token}
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "READY") {
	}
	Case{
		Name: "http: memory of " + strconv.Itoa(n) + " idle streams on one server", Unit: "KiB a stream",
		Peer: "64 KiB", Promise: 1, Loose: 2,
		Ours:   func() float64 { return (used() - before) / float64(n) / 1024 },
		Theirs: func() float64 { return 64 },
		Note:   "Heap and stacks of the server in use, of which the streams are the difference; sockets of the kernel are not in it. Readers are in a process of their own.",
	}.Run(t)
	turn, err := s.Threads.StartTurn(t.Context(), thole.LocalActor, thread.StartTurn{Thread: id, Input: thole.Text("sim: say awake")})
	if err != nil {
		t.Fatal(err)
	}
	for { // and they are still served
		if got, err := s.Threads.Turn(t.Context(), thole.LocalActor, id, turn.ID); err != nil || got.Outcome != "" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
}
