package turnstart_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
)

const envServer = "THOLE_TEST_CODEX_SERVER"

// server is the parent's codex for the children that it kills.
func server(t *testing.T) *codex {
	t.Helper()
	var at struct {
		Home, Sock, Work string
		PID              int
	}
	if text := os.Getenv(envServer); text != "" {
		if err := json.Unmarshal([]byte(text), &at); err != nil {
			t.Fatal(err)
		}
		return &codex{t: t, home: at.Home, sock: at.Sock, work: at.Work, pid: at.PID}
	}
	c := newCodex(t)
	at.Home, at.Sock, at.Work, at.PID = c.home, c.sock, c.work, c.pid
	text, err := json.Marshal(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(envServer, string(text))
	return c
}

// The deliverer is killed at durable steps of a delivery into a real thread.
// Its successor ends it: delivered, as one turn.
func TestDelivererKilled(t *testing.T) {
	c := server(t)
	const job = thole.JobID("00000000-0000-7000-8000-000000000001")
	open := func(dir string, hook sqldb.Hook) *store.DB {
		db, err := storetest.OpenAt(bg, sqldb.Config{Path: filepath.Join(dir, "thole.db"), Hook: hook})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	crash.Sample(t, 2, func(w *crash.Work) error {
		u := c.join()
		if err := os.WriteFile(filepath.Join(w.Dir, "thread"), []byte(u.thread), 0o600); err != nil {
			return err
		}
		r := c.rigOn(t, u, open(w.Dir, w.Hook), nil)
		r.deliver()
		r.jobAs(job, "sim: wait 100ms ;; say got it")
		r.until(settled)
		r.halt()
		return r.db.Close()
	}, func(t *testing.T, dir string, _ []string, killed string) {
		thread, err := os.ReadFile(filepath.Join(dir, "thread"))
		if err != nil {
			t.Fatal(err)
		}
		u := c.dial()
		u.thread = string(thread)
		r := c.rigOn(t, u, open(dir, nil), nil)
		defer r.db.Close()
		r.deliver()
		defer r.halt()
		r.jobAs(job, "sim: wait 100ms ;; say got it")
		r.delivered(t)
	})
}
