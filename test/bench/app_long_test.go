//go:build linux

package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/protocol/app"
)

// longCodex makes a home of the real agent with a thread of n items and returns
// both. One turn is real; the rest are copies of it in the agent's own record of
// the thread, because an agent that makes all of them sends all of them to its
// model with every call, and takes time with the square. The copies have what
// clients are shown and nothing for the model, as after compactions.
func longCodex(t testing.TB, n int) (home, thread string) {
	t.Helper()
	home = codexHome(t)
	addr, cmd := startCodex(t, home)
	s := newSide(t, addr, cmd.Process.Pid)
	step := "run true" + strings.Repeat(" ;; and run true", (perTurn-2)/2-1) // the scripted model has names for 26 calls a step
	s.turn("sim: " + step + " ;; " + step + " ;; say done")
	s.c.Close()
	finish(cmd)
	multiply(t, home, s.thread, n)
	addr, cmd = startCodex(t, home)
	defer finish(cmd)
	c := hello(t, addr)
	defer c.Close()
	if _, err := c.Resume(bg(t), app.ThreadResumeParams{ThreadID: s.thread, ExcludeTurns: true}); err != nil {
		t.Fatal(err)
	}
	limit, got := 100, 0
	p := app.ItemsListParams{ThreadID: s.thread, PageParams: app.PageParams{Limit: &limit}}
	for more := true; more; more = p.Cursor != nil {
		page, err := c.Items(bg(t), p)
		if err != nil {
			t.Fatal(err)
		}
		got += len(page.Data)
		p.Cursor = page.NextCursor
	}
	if got < n {
		t.Fatalf("the real server's thread has %d items, want %d", got, n)
	}
	return home, s.thread
}

// multiply writes the last turn of a thread's record again until it has n items.
func multiply(t testing.TB, home, thread string, n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(home, ".codex/sessions/*/*/*/*-"+thread+".jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("records of %s: %v, %v", thread, files, err)
	}
	f, err := os.OpenFile(files[0], os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var last []map[string]any // of the last turn
	ordinal, items := 0, 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var line map[string]any
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber()
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		ordinal++
		payload := line["payload"].(map[string]any)
		switch {
		case payload["type"] == "task_started":
			last, items = nil, 0
		case payload["type"] == "item_completed":
			items++
		case line["type"] == "response_item" || line["type"] == "token_usage_record":
			continue
		}
		last = append(last, line)
	}
	out := bufio.NewWriter(f)
	if items == 0 {
		t.Fatal("the last turn has no items")
	}
	for range n / items {
		turn := thole.NewID[string](time.Now())
		for _, line := range last {
			again := renamed(line, turn).(map[string]any)
			again["ordinal"] = ordinal
			ordinal++
			raw, err := json.Marshal(again)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = out.Write(append(raw, '\n')) // Flush reports
		}
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
}

// renamed is a copy with the ids of another turn and its items.
func renamed(v any, turn string) any {
	switch v := v.(type) {
	case map[string]any:
		c := maps.Clone(v)
		for k, e := range c {
			switch {
			case k == "turn_id" || k == "root_turn_id":
				c[k] = turn
			case k == "id":
				c[k] = e.(string) + "-" + turn
			default:
				c[k] = renamed(e, turn)
			}
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, e := range v {
			c[i] = renamed(e, turn)
		}
		return c
	}
	return v
}
