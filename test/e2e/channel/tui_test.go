package channel

import (
	"os"
	"strings"
	"testing"
	"time"
)

// A terminal with a new thread, a job that ends elsewhere: its result is one turn
// in that terminal, and waiting for it asked the model nothing.
func TestResultAppearsInANewTerminal(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.terminal(binary, "codex", "run", "--new-thread", "--auto-delivery-policy", "trusted-all")
	d.shows("Scripted")
	d.say("sim: say hello from the model")
	d.shows("• hello from the model")
	var s []session
	d.until("the thread to be bound", func() bool {
		s = d.sessions()
		return len(s) == 1 && s[0].State == "live" && s[0].Thread != ""
	})
	d.until("the terminal's own request for a title", func() bool { return len(d.sim.Turns()) >= 2 })
	var j struct {
		JobID string `json:"job_id"`
	}
	before := len(d.sim.Requests())
	d.thole(&j, "job", "submit", "--target", "cli", "--thread-id", s[0].Thread)
	d.thole(nil, "codex", "status")
	time.Sleep(3 * time.Second) // the waiting is what is measured
	if n := len(d.sim.Requests()) - before; n != 0 {
		t.Errorf("waiting for a job made %d requests to the model", n)
	}
	d.thole(nil, "job", "complete", "--job-id", j.JobID, "--summary", "sim: say the result was read")
	d.shows("• the result was read")
	if b := d.fate(); b.CloseReason != "delivered" || b.Attempts != 1 {
		t.Fatalf("%+v", b)
	}
	asked := 0
	for _, r := range d.sim.Turns() { // the terminal itself asks for a title
		if strings.Contains(r.Prompt, "[delivery") && !strings.HasPrefix(r.Prompt, "Generate a concise") {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("the model was asked %d times for one delivery", asked)
		for _, r := range d.sim.Requests() {
			t.Logf("%s %s step %d: %q", r.Kind, r.Path, r.Step, r.Prompt)
		}
	}
	d.say("/quit")
	d.until("the session to end", func() bool { return len(d.sessions()) == 0 })

	// The same thread again, by its id.
	d.kill()
	d.terminal(binary, "codex", "run", "--bind-thread-id", s[0].Thread, "--auto-delivery-policy", "trusted-all")
	d.shows("• the result was read")
	d.until("the session", func() bool { s = d.sessions(); return len(s) == 1 && s[0].State == "live" })
	d.job("cli", s[0].Thread, "sim: say the second result")
	d.shows("• the second result")
}

// With Codex's own settings and no flag, the start asks once; who agrees gets results.
func TestAgreedAtTheStart(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.terminal(binary, "codex", "run", "--new-thread")
	d.shows("Deliver results so? [y/N]")
	d.say("y")
	d.shows("Scripted")
	d.say("sim: say hello from the model")
	d.shows("• hello from the model")
	var s []session
	d.until("the thread to be bound", func() bool { s = d.sessions(); return len(s) == 1 && s[0].Thread != "" })
	d.job("cli", s[0].Thread, "sim: say the agreed result")
	d.shows("• the agreed result")
}

// Strict by default: a result whose needs are unknown waits for a human. What the
// user gives the session is warned of while the terminal runs.
func TestStrictSafeHolds(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.terminal("sh", "-c", "exec '"+binary+"' codex run --new-thread 2>'"+d.path("warnings")+"'")
	d.shows("Scripted")
	d.say("sim: say hello from the model")
	d.shows("• hello from the model")
	var s []session
	d.until("the thread to be bound", func() bool { s = d.sessions(); return len(s) == 1 && s[0].Thread != "" })
	d.job("cli", s[0].Thread, "sim: say never seen")
	if b := d.fate(); b.HeldFor != "policy" || b.Attempts != 0 {
		t.Fatalf("%+v", b)
	}
	d.thole(nil, "codex", "sessions", "inspect", s[0].ID) // sees what the session allows
	d.widen(s[0].Address, s[0].Thread)
	d.thole(nil, "codex", "sessions", "inspect", s[0].ID)
	d.until("the warning", func() bool {
		b, _ := os.ReadFile(d.path("warnings"))
		return strings.Contains(string(b), "wider: network, write_access") && strings.Contains(string(b), "effective: approval false, network false, write false")
	})
}
