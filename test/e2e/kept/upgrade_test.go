package kept

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/poll"
)

// The threads of v0.1.0.tar.zst.
const (
	ofTest     = "018f0000-0000-7000-8000-000000000001"
	ofCodex    = "018f0000-0000-7000-8000-000000000002"
	ofClaude   = "018f0000-0000-7000-8000-000000000003"
	ofOpencode = "018f0000-0000-7000-8000-000000000004"
	waits      = "018f0000-0000-7000-8000-000000000010" // for an answer, with a message in its queue
	archived   = "018f0000-0000-7000-8000-000000000011"
)

// A home of v0.1.0 holds after the upgrade what it held before, and goes on.
func TestUpgradeFromV010(t *testing.T) {
	u := newUpgrade(t)
	u.Up()
	u.whole()
	for thread, agent := range map[string]string{ofTest: "test", ofCodex: "codex", ofClaude: "claude", ofOpencode: "opencode"} {
		if out := u.thole("thread", "send", thread, "sim: run cat kept.txt ;; say after the upgrade: %tool%"); !strings.Contains(out, "kept by "+agent) || !strings.Contains(out, "after the upgrade") {
			t.Errorf("the next turn of %s: %s", agent, out)
		}
	}
	poll.Until(t, "the message that waited", func() bool { return strings.Contains(u.thole("thread", "show", waits), "| the message that waited") })
	if out := u.thole("token", "list"); !strings.Contains(out, "kept") {
		t.Errorf("tokens: %s", out)
	}
	for key, value := range map[string]string{"asks.default_reply": "go on", "executor.remove_after": "48h0m0s", "delivery.min_interval": "1s"} {
		if out := u.thole("config", "show"); !slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool { return strings.HasPrefix(line, key) && strings.Contains(line, value) }) {
			t.Errorf("%s is not %s: %s", key, value, out)
		}
	}

	// What needs a person goes on when one decides, and the work that ran can end.
	var held []struct {
		ID     string `json:"batch_id"`
		Thread string `json:"source_thread_id"`
	}
	u.json(&held, "batch", "list", "--held")
	if len(held) != 1 || held[0].Thread != ofTest {
		t.Fatalf("held: %+v", held)
	}
	u.thole("batch", "close-head", "--source-thread-id", ofTest, "--batch-id", held[0].ID, "--reason", "operator_confirmed_delivery")
	var running []struct {
		ID string `json:"job_id"`
	}
	u.json(&running, "job", "list", "--status", "running")
	if len(running) != 1 {
		t.Fatalf("running: %+v", running)
	}
	u.thole("job", "complete", "--job-id", running[0].ID, "--summary", "soaked")
	poll.Until(t, "the result of the job that ran", func() bool { return strings.Contains(u.thole("thread", "show", ofOpencode), "soaked") })
	u.thole("check")
	copied := filepath.Join(t.TempDir(), "copy.db")
	u.thole("db", "backup", copied)
	u.thole("db", "check", copied)
}

// whole compares the home with what v0.1.0 said of it.
func (u *upgrade) whole() {
	u.Helper()
	type list []struct{ ID string }
	var before struct{ Data list }
	var after list
	u.said("threads", &before)
	u.json(&after, "thread", "list")
	ids := func(l list) (out []string) {
		for _, thread := range l {
			out = append(out, thread.ID)
		}
		slices.Sort(out)
		return out
	}
	if a, b := ids(after), ids(before.Data); len(b) != 5 || !slices.Equal(a, b) {
		u.Errorf("threads: %v, were %v", a, b)
	}
	if out := u.thole("thread", "list", "--archived"); !strings.Contains(out, archived) {
		u.Errorf("archived threads: %s", out)
	}
	for _, thread := range []string{ofTest, ofCodex, ofClaude, ofOpencode, archived} {
		var then, now shown
		u.said("thread-"+thread, &then)
		u.json(&now, "thread", "show", thread)
		old, items := then.items(), now.items()
		if len(old) < 3 {
			u.Fatalf("%s had %d lines", thread, len(old))
		}
		for _, line := range old {
			if !slices.Contains(items, line) {
				u.Errorf("%s lacks\n%s\nof\n%s", thread, line, strings.Join(items, "\n"))
			}
		}
	}
	u.ledger()
	u.thole("check")
}

// ledger compares jobs, batches, artifacts and the audit rows that ended before.
func (u *upgrade) ledger() {
	u.Helper()
	for name, args := range map[string][]string{"jobs": {"job", "list"}, "audit": {"audit", "list"}} {
		var then, now []map[string]any
		u.said(name, &then)
		u.json(&now, args...)
		if len(then) < 7 {
			u.Fatalf("%d %s", len(then), name)
		}
		for _, row := range then {
			if !slices.ContainsFunc(now, func(r map[string]any) bool { return sameRow(row, r) }) {
				u.Errorf("%s: %s is not among %s", name, flat(row), flat(now))
			}
		}
	}
	var jobs []struct {
		ID       string `json:"job_id"`
		Artifact string `json:"artifact_id"`
	}
	u.json(&jobs, "job", "list")
	read := 0
	for _, job := range jobs {
		if job.Artifact != "" {
			read++
			u.thole("artifact", "read", "--artifact-id", job.Artifact)
		}
	}
	if read != 2 {
		u.Errorf("%d artifacts were read", read)
	}
}

// sameRow reports whether all members of a row but its times are the same in another.
func sameRow(then, now map[string]any) bool {
	for member, value := range then {
		if strings.HasSuffix(member, "_at") || member == "at" {
			continue
		}
		a, _ := json.Marshal(value)
		b, _ := json.Marshal(now[member])
		if string(a) != string(b) {
			return false
		}
	}
	return true
}

// The program may be killed at any moment of the upgrade; the next start completes it.
// Copies of one home cannot be up at the same time: their executors have the same ids.
func TestUpgradeKilled(t *testing.T) {
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	u := newUpgrade(t)
	begin := time.Now()
	u.Up()()
	start := time.Since(begin)
	u.migrated("after a whole start")
	for range 5 {
		t.Run("", func(t *testing.T) {
			u := newUpgrade(t)
			// Most of a start comes after the migrations.
			delay := time.Duration(math.Pow(r.Float64(), 2) * float64(start))
			u.killedAfter(delay)
			t.Logf("killed after %v of %v with %d migrations", delay, start, u.migrations())
			u.Up()
			u.migrated("after the next start")
			u.ledger()
			if out := u.thole("thread", "list"); !strings.Contains(out, ofCodex) || !strings.Contains(out, waits) {
				t.Errorf("threads: %s", out)
			}
			u.thole("check")
		})
	}
}

func (u *upgrade) migrated(when string) {
	u.Helper()
	if n := u.migrations(); n < 30 {
		u.Fatalf("%s the store has %d migrations", when, n)
	}
}

func (u *upgrade) killedAfter(delay time.Duration) {
	u.Helper()
	cmd := u.Command("up", "--demo", "--no-browser", "--listen", "127.0.0.1:0")
	if err := cmd.Start(); err != nil {
		u.Fatal(err)
	}
	time.AfterFunc(delay, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
}
