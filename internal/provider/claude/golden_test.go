package claude

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/providertest"
)

const goldenTurn thole.TurnID = "0190a0c0-0000-7000-8000-000000000001"

// play feeds lines of the CLI to a decoder and ends at its first result.
func play(lines *process.Lines) providertest.Record {
	var r providertest.Record
	em := provider.NewEmitter(goldenTurn, func(e event.Event) { r = append(r, e) })
	d := newDecoder(em, "/home/user/work", &todoList{session: "s"})
	ended := provider.Ended{Outcome: thole.OutcomeInterrupted}
	for {
		line, err := lines.Next()
		if err != nil {
			break
		}
		m, err := parse(line)
		if err != nil {
			continue
		}
		switch m.Type {
		case "stream_event":
			if m.Event != nil && m.Parent == "" {
				d.streamEvent(m.Event, len(m.Abandoned) > 0)
			}
		case "assistant":
			d.assistant(m)
		case "user":
			d.user(m)
		case "result":
			ended.Outcome, ended.Error = verdict(m, d.lastError)
			em.Usage(since(m.ModelUsage, nil, "claude-sonnet-4-5"))
			em.End(ended)
			return r
		}
	}
	em.End(ended)
	return r
}

func golden(t *testing.T, name string) providertest.Record {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	r := play(process.NewLines(bytes.NewReader(raw)))
	if err := providertest.Check(goldenTurn, r); err != nil {
		t.Fatalf("%v; events:\n%s", err, r)
	}
	return r
}

func TestGoldenOutcomes(t *testing.T) {
	for _, c := range []struct {
		name    string
		outcome thole.Outcome
		code    thole.ErrorCode
		status  int
	}{
		{"03-perm-allow", thole.OutcomeCompleted, "", 0},
		{"04-perm-deny", thole.OutcomeCompleted, "", 0},
		{"07-askuser", thole.OutcomeCompleted, "", 0},
		{"12-interrupt-stream", thole.OutcomeInterrupted, "", 0},
		{"13-interrupt-tool", thole.OutcomeInterrupted, "", 0},
		{"20-error-cut", thole.OutcomeCompleted, "", 0},
		{"20-error-err400", thole.OutcomeFailed, thole.ErrBadRequest, 400},
		{"20-error-err401", thole.OutcomeFailed, thole.ErrAuth, 401},
		{"20-error-err404", thole.OutcomeFailed, thole.ErrBadRequest, 404},
		{"20-error-err429", thole.OutcomeFailed, thole.ErrRateLimit, 429},
		{"20-error-err500", thole.OutcomeFailed, thole.ErrOverloaded, 500},
		{"20-error-err529", thole.OutcomeFailed, thole.ErrOverloaded, 529},
		{"20-error-toolong", thole.OutcomeFailed, thole.ErrContextTooLong, 400},
		{"20-error-refusal", thole.OutcomeFailed, thole.ErrModelRefused, 0},
		{"20-error-sseerr", thole.OutcomeFailed, thole.ErrOverloaded, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := golden(t, c.name)
			e := r.Ended()
			if e.Outcome != c.outcome {
				t.Fatalf("outcome %s, want %s", e.Outcome, c.outcome)
			}
			if c.code != "" && (e.Error.Code != c.code || e.Error.Status != c.status) {
				t.Errorf("error %+v, want %s %d", e.Error, c.code, c.status)
			}
			if strings.Contains(r.Text(), "API Error") {
				t.Errorf("the error is told as the agent's words: %q", r.Text())
			}
		})
	}
}

func TestGoldenCommand(t *testing.T) {
	r := golden(t, "03-perm-allow")
	if r.Text() != "I will run it.\ntool said: hello" {
		t.Errorf("text %q", r.Text())
	}
	cmds := r.Items(event.ItemCommand)
	if len(cmds) != 1 || cmds[0].State != event.StateCompleted || cmds[0].Command.Output != "hello" || *cmds[0].Command.ExitCode != 0 {
		t.Errorf("commands %+v", cmds)
	}
	if u := r.Usage(); u.Input != 200 || u.Output != 33 || u.CacheRead != 60 || u.CacheWrite != 40 || *u.CostMicros != 1263 {
		t.Errorf("usage %+v", u)
	}
}

func TestGoldenReset(t *testing.T) {
	r := golden(t, "20-error-cut")
	if n := len(r.Of(event.StepReset)); n != 1 {
		t.Errorf("%d resets", n)
	}
	if n := strings.Count(r.Text(), "this will be cut"); n != 10 {
		t.Errorf("told %d times", n)
	}
}

func TestGoldenEdit(t *testing.T) {
	items := golden(t, "06-perm-always").Items(event.ItemFileChange)
	if len(items) != 1 || len(items[0].Changes) != 1 {
		t.Fatalf("items %+v", items)
	}
	c := items[0].Changes[0]
	if c.Path != "w1.txt" || c.Kind != "add" || !strings.Contains(c.Diff, "@@ -0,0 +1,1 @@\n+changed by host\n") {
		t.Errorf("change %+v", c)
	}
}

func TestGoldenTodos(t *testing.T) {
	list := map[int]event.TodoState{}
	for _, e := range golden(t, "10-tasks") {
		for _, todo := range e.Todos {
			list[todo.Order] = todo.State
		}
	}
	if list[0] != event.TodoDone || list[1] != event.TodoCanceled {
		t.Errorf("tasks %v", list)
	}
	shots := golden(t, "11-todowrite").Of(event.TodoSnapshot)
	if len(shots) != 2 || shots[0].Todos[0].State != event.TodoDoing || shots[1].Todos[1].State != event.TodoDone {
		t.Errorf("snapshots %+v", shots)
	}
	if shots[0].Todos[1].ID != shots[1].Todos[1].ID {
		t.Error("an entry's id changed")
	}
}

func TestGoldenSubagent(t *testing.T) {
	r := golden(t, "57-subagent")
	var caller thole.ItemID
	for _, i := range r.Items(event.ItemTool) {
		if i.Tool.Name == "Task" {
			caller = i.ID
		}
	}
	cmds := r.Items(event.ItemCommand)
	if caller == "" || len(cmds) != 1 || cmds[0].Parent != caller {
		t.Errorf("caller %q, commands %+v", caller, cmds)
	}
}

func TestGoldenPlan(t *testing.T) {
	plans := golden(t, "14-plan").Items(event.ItemPlan)
	if len(plans) != 1 || plans[0].Text != "1. do a\n2. do b" {
		t.Errorf("plans %+v", plans)
	}
}

// The same lines give the same ids: a reader that appends events can drop repeats.
func TestGoldenStableIDs(t *testing.T) {
	a, b := golden(t, "07-askuser"), golden(t, "07-askuser")
	for i := range a {
		if a[i].ID != b[i].ID {
			t.Fatalf("event %d: %s and %s", i, a[i].ID, b[i].ID)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.jsonl")
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Fuzz(func(t *testing.T, s string) {
		if err := play(process.NewLines(strings.NewReader(s))).Settled(); err != nil {
			t.Fatal(err)
		}
	})
}
