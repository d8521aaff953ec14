package calls

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
)

var now = time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC)

func setUp(t *testing.T) (*Store, gateway.Call) {
	t.Helper()
	claim := gateway.Claim{Thread: thole.NewID[thole.ThreadID](now), Turn: thole.NewID[thole.TurnID](now)}
	s := New(filepath.Join(t.TempDir(), "calls"), func(c gateway.Claim) bool { return c.Thread == claim.Thread || c.Thread == "../x" })
	return s, gateway.Call{Claim: claim, Route: "r", Upstream: "up0", Model: "m", Path: "/messages", At: now}
}

func TestCalls(t *testing.T) {
	s, c := setUp(t)
	for i, body := range []string{`{"a":1}`, `{"a":2}`} {
		c.At = now.Add(time.Duration(i) * time.Second)
		r := s.Record(c, []byte(body))
		_, _ = r.Write([]byte("data: 1\n"))
		if i == 0 {
			_, _ = r.Write([]byte("data: 2\n"))
			r.End(gateway.Result{Usage: thole.Usage{Input: 3}, Known: true, Status: 200, Upstream: "up1", EndedAt: now.Add(time.Minute)})
		}
	}
	all, err := s.Calls(c.Thread, c.Turn)
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if a := all[0]; text(t, a.Request) != `{"a":1}` || text(t, a.Response) != "data: 1\ndata: 2\n" || !a.Ended || a.Upstream != "up1" || a.Usage.Input != 3 || a.Took != time.Minute {
		t.Errorf("%+v", a)
	}
	if a := all[1]; a.Ended || text(t, a.Response) != "data: 1\n" || a.Upstream != "up0" {
		t.Errorf("a call that runs: %+v", a)
	}
	_ = filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, _ error) error {
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

func TestCollect(t *testing.T) {
	s, c := setUp(t)
	s.wants = func(gateway.Claim) bool { return true }
	gone := c
	gone.Thread = thole.NewID[thole.ThreadID](now)
	for _, one := range []gateway.Call{c, gone} {
		s.Record(one, []byte("{}")).End(gateway.Result{})
	}
	s.collect(t.Context(), func(_ context.Context, id thole.ThreadID) bool { return id == gone.Thread })
	for one, want := range map[thole.ThreadID]int{c.Thread: 1, gone.Thread: 0} {
		if all, err := s.Calls(one, c.Turn); err != nil || len(all) != want {
			t.Errorf("%s: %+v, %v", one, all, err)
		}
	}
}

func TestNotAskedFor(t *testing.T) {
	s, c := setUp(t)
	for _, thread := range []thole.ThreadID{thole.NewID[thole.ThreadID](now.Add(time.Hour)), "../x"} {
		c.Thread = thread
		if s.Record(c, []byte("{}")) != nil {
			t.Errorf("%s is recorded", thread)
		}
	}
	if _, err := s.Calls("../x", c.Turn); err == nil {
		t.Error("read")
	}
	if _, err := os.Stat(s.dir); err == nil {
		t.Error("something was written")
	}
}

func TestBounds(t *testing.T) {
	s, c := setUp(t)
	r := s.Record(c, []byte(`"`+strings.Repeat("x", maxBody)+`"`))
	for range 9 {
		if n, err := r.Write(make([]byte, 1<<20)); n != 1<<20 || err != nil {
			t.Fatal(n, err)
		}
	}
	r.End(gateway.Result{EndedAt: now})
	all, err := s.Calls(c.Thread, c.Turn)
	if err != nil || len(all) != 1 || !all[0].Cut || len(text(t, all[0].Response)) != maxBody {
		t.Errorf("%v", err)
	}
	sparse := filepath.Join(s.dir, string(c.Thread), "big")
	if err := os.WriteFile(sparse, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(sparse, maxThread); err != nil {
		t.Fatal(err)
	}
	if s.Record(c, []byte("{}")) != nil {
		t.Error("recorded beyond the bound of a thread")
	}
}

// TestManySmallCalls: files count although nothing is in them.
func TestManySmallCalls(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := size(dir); n != 3*minFile {
		t.Error(n)
	}
}
