package kept

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/test/e2e/home"
)

// each runs a test for what every kept version left.
func each(t *testing.T, kind string, test func(t *testing.T, archive string)) {
	all, err := filepath.Glob(filepath.Join("testdata", kind+"-*.tar.gz"))
	if err != nil || len(all) == 0 {
		t.Fatalf("nothing is kept: %v", err)
	}
	for _, path := range all {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".tar.gz"), func(t *testing.T) { test(t, path) })
	}
}

func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	extract(t, tar.NewReader(z), dir)
}

func extract(t *testing.T, r *tar.Reader, dir string) {
	t.Helper()
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(h.Name))
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(to, h.FileInfo().Mode().Perm())
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, to)
		default:
			var body []byte
			if body, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(to, body, h.FileInfo().Mode().Perm())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A home of an earlier version, with the program as it is shipped.
func TestHomesGoOn(t *testing.T) {
	each(t, "home", func(t *testing.T, archive string) {
		h := home.New(t)
		unpack(t, archive, h.Dir)
		h.Up()
		run := func(args ...string) string {
			t.Helper()
			out, words, code := h.Run(args...)
			if code != 0 {
				t.Fatalf("thole %v: exit %d: %s%s", args, code, out, words)
			}
			return out
		}
		var jobs []struct {
			Status string
			Thread string `json:"source_thread_id"`
			Batch  string `json:"batch_id"`
		}
		if err := json.Unmarshal([]byte(run("job", "list", "--json")), &jobs); err != nil || len(jobs) != 2 {
			t.Fatalf("jobs: %v %v", jobs, err)
		}
		states := map[string]bool{}
		id := jobs[0].Thread
		for _, j := range jobs {
			states[j.Status] = true
			if j.Batch != "" {
				if got := run("batch", "inspect", "--json", "--batch-id", j.Batch); !strings.Contains(got, `"close_reason":"delivered"`) {
					t.Errorf("the batch: %s", got)
				}
			}
		}
		if !states["running"] || !states["ready"] {
			t.Errorf("jobs: %v", jobs)
		}
		run("check")
		if got := run("thread", "list"); !strings.Contains(got, "kept") {
			t.Errorf("threads: %s", got)
		}
		if got := run("thread", "show", id); !strings.Contains(got, "hello from the last version") {
			t.Errorf("history: %s", got)
		}

		// One more turn, on the files that the old ones left; then the waiting message
		// has its turn.
		if got := run("thread", "send", id, "sim: run cat kept.txt ;; say it says %tool%"); !strings.Contains(got, "it says kept") {
			t.Errorf("the next turn: %s", got)
		}
		poll.Until(t, "the queued message", func() bool { return strings.Contains(run("thread", "show", id), "later") })
		run("check")
	})
}

// A PostgreSQL database of an earlier version, with the shipped pipeline on it.
func TestDatabasesGoOn(t *testing.T) {
	each(t, "postgres", func(t *testing.T, archive string) {
		ctx, me := context.Background(), thole.LocalActor
		dir, dsn := t.TempDir(), lab.Postgres(t)
		unpack(t, archive, dir)
		restore(t, filepath.Join(dir, "postgres.sql"), dsn)
		db, err := store.Open(ctx, sqldb.Config{DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		k := tholetest.New(t, tholetest.DB(db), tholetest.Home(dir))
		page, err := k.Threads.List(ctx, me, thread.Filter{PageParams: thread.PageParams{Limit: 10}})
		if err != nil || len(page.Items) != 1 || page.Items[0].Name != "kept" {
			t.Fatalf("threads: %+v %v", page.Items, err)
		}
		id := page.Items[0].ID
		said := func(turn thole.TurnID) string {
			items, err := k.Threads.Items(ctx, me, id, turn, thread.PageParams{Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			var text []string
			for _, i := range items.Items {
				if i.Item.Kind == event.ItemMessage {
					text = append(text, i.Item.Text)
				}
			}
			return strings.Join(text, " ")
		}
		if got := said(""); !strings.Contains(got, "hello from the last version") || !strings.Contains(got, "done") {
			t.Errorf("history: %q", got)
		}
		if todos, err := k.Threads.Todos(ctx, me, id); err != nil || len(todos) != 2 || todos[0].State != event.TodoDone {
			t.Errorf("todos: %v %v", todos, err)
		}
		turn, err := k.Threads.StartTurn(ctx, me, thread.StartTurn{Thread: id, Input: thole.Text("sim: run cat kept.txt ;; say it says %tool%")})
		if err != nil {
			t.Fatal(err)
		}
		var got fold.Turn
		poll.Until(t, "the next turn", func() bool {
			got, err = k.Threads.Turn(ctx, me, id, turn.ID)
			return err == nil && got.Phase.Terminal()
		})
		if text := said(turn.ID); got.Outcome != thole.OutcomeCompleted || !strings.Contains(text, "it says kept") {
			t.Errorf("the next turn: %+v %q", got, text)
		}
		poll.Until(t, "the queued message", func() bool { return strings.Contains(said(""), "later") })

		m := delivery.New(delivery.Config{Store: db.Delivery(), Limits: delivery.Limits{MaxJobs: 3, MaxBytes: 100, Window: time.Hour, ManualWindow: time.Hour, MaxAttempts: 3}})
		batches, err := m.Batches(ctx, me, delivery.BatchFilter{Open: true, Limit: 10})
		if err != nil || len(batches) != 1 || batches[0].Batch.Jobs != 1 {
			t.Fatalf("what waits to be delivered: %+v %v", batches, err)
		}
		jobs, err := m.Jobs(ctx, me, delivery.JobFilter{State: thole.JobRunning, Limit: 10})
		if err != nil || len(jobs) != 1 {
			t.Fatalf("what runs: %+v %v", jobs, err)
		}
		if job, err := m.Finish(ctx, me, delivery.Finish{Job: jobs[0].ID, State: thole.JobReady, Summary: "done", Request: "r2"}); err != nil || job.State != thole.JobReady {
			t.Errorf("%+v %v", job, err)
		}
	})
}

// restore runs what pg_dump wrote, but for what is psql's own.
func restore(t *testing.T, path, dsn string) {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var statements strings.Builder
	for line := range strings.Lines(string(body)) {
		if !strings.HasPrefix(line, `\`) {
			statements.WriteString(line)
		}
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.PgConn().Exec(ctx, statements.String()).ReadAll(); err != nil {
		t.Fatal(err)
	}
}
