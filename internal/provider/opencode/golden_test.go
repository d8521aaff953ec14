package opencode

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/providertest"
)

const goldenTurn thole.TurnID = "0190a0c0-0000-7000-8000-000000000001"

// play feeds a stream to a decoder. The first session and message it names are
// the turn's; it ends when that session is idle and settled.
func play(stream string, twice bool) providertest.Record {
	var r providertest.Record
	em := provider.NewEmitter(goldenTurn, func(e event.Event) { r = append(r, e) })
	d := newDecoder(em, "/home/user/work/ws", "", "")
	ended := provider.Ended{Outcome: thole.OutcomeInterrupted}
	apply := func(e serverEvent) bool {
		p := decodeProps(e.Properties)
		if d.session == "" && e.Type == "session.created" {
			d.session = p.Info.ID
		}
		if e.Type == "session.created" {
			d.born(p.Info)
		}
		if !d.ours(p.SessionID) {
			return true
		}
		switch e.Type {
		case "message.updated":
			d.message(p.Info)
		case "message.part.updated":
			if p.Part != nil {
				d.part(p.Part)
			}
		case "message.part.delta":
			d.delta(p)
		case "todo.updated":
			d.todos(p.Todos)
		case "permission.asked":
			var a nativeAsk
			if json.Unmarshal(e.Properties, &a) == nil && a.Permission == "edit" {
				d.change(a)
			}
		case "session.status":
			if p.Status != nil && p.Status.Type == "retry" {
				d.retry()
			}
		case "session.idle":
			if p.SessionID != d.session || !d.settled() {
				return true
			}
			ended.Outcome = thole.OutcomeCompleted
			if last := d.last(); last.info.Error != nil {
				f, real := failureOf(last.info.Error)
				ended.Outcome, ended.Error = thole.OutcomeFailed, f
				if !real {
					ended.Outcome = thole.OutcomeInterrupted
				}
			}
			return false
		}
		return true
	}
	decodeStream(strings.NewReader(stream), func(e serverEvent) bool {
		if !apply(e) {
			return false
		}
		// As after a reconnect.
		return !twice || e.Type == "message.part.delta" || e.Type == "session.status" || e.Type == "todo.updated" || e.Type == "permission.asked" || apply(e)
	})
	em.Usage(d.total())
	em.End(ended)
	return r
}

func golden(t *testing.T, name string) providertest.Record {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".sse"))
	if err != nil {
		t.Fatal(err)
	}
	r := play(string(raw), false)
	if err := providertest.Check(goldenTurn, r); err != nil {
		t.Fatalf("%v; events:\n%s", err, r)
	}
	again := play(string(raw), true)
	if err := providertest.Check(goldenTurn, again); err != nil {
		t.Fatalf("read again: %v; events:\n%s", err, again)
	}
	if len(again) != len(r) {
		t.Fatalf("reading everything twice gives %d events instead of %d:\n%s", len(again), len(r), again)
	}
	for i := range r {
		if r[i].ID != again[i].ID {
			t.Fatalf("event %d: %s and %s", i, r[i].ID, again[i].ID)
		}
	}
	return r
}

func TestGoldenOutcomes(t *testing.T) {
	for _, c := range []struct {
		name    string
		outcome thole.Outcome
		code    thole.ErrorCode
	}{
		{"11-hello", thole.OutcomeCompleted, ""},
		{"12-bash", thole.OutcomeCompleted, ""},
		{"16-permission-once", thole.OutcomeCompleted, ""},
		{"20-abort-stream", thole.OutcomeInterrupted, ""},
		{"30-error-err400", thole.OutcomeFailed, thole.ErrBadRequest},
		{"30-error-err401", thole.OutcomeFailed, thole.ErrAuth},
		{"30-error-refusal", thole.OutcomeFailed, thole.ErrModelRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := golden(t, c.name).Ended()
			if e.Outcome != c.outcome || c.code != "" && e.Error.Code != c.code {
				t.Errorf("ended %+v %+v", e, e.Error)
			}
		})
	}
}

func TestGoldenCommand(t *testing.T) {
	r := golden(t, "12-bash")
	cmds := r.Items(event.ItemCommand)
	if len(cmds) != 1 || cmds[0].Command.Line != "echo hello > o1.txt && cat o1.txt" || cmds[0].Command.Output != "hello\n" || *cmds[0].Command.ExitCode != 0 {
		t.Errorf("commands %+v", cmds)
	}
	if thoughts := r.Items(event.ItemReasoning); len(thoughts) != 1 || thoughts[0].Text != "I think of bash" {
		t.Errorf("reasoning %+v", thoughts)
	}
	if !strings.HasPrefix(r.Text(), "Running.\ntool said: hello") {
		t.Errorf("text %q", r.Text())
	}
	if u := r.Usage(); u.Input != 240 || u.CacheRead != 60 || u.Reasoning != 3 || u.CostMicros == nil {
		t.Errorf("usage %+v", u)
	}
}

func TestGoldenEdit(t *testing.T) {
	items := golden(t, "16-permission-once").Items(event.ItemFileChange)
	if len(items) != 1 || len(items[0].Changes) != 1 {
		t.Fatalf("items %+v", items)
	}
	if c := items[0].Changes[0]; c.Path != "w.txt" || c.Kind != "add" || !strings.HasPrefix(c.Diff, "--- ") || !strings.Contains(c.Diff, "+abc") {
		t.Errorf("change %+v", c)
	}
}

func TestGoldenSubagent(t *testing.T) {
	r := golden(t, "23-subagent")
	var caller thole.ItemID
	for _, i := range r.Items(event.ItemTool) {
		if i.Tool.Name == "task" {
			caller = i.ID
		}
	}
	cmds := r.Items(event.ItemCommand)
	if caller == "" || len(cmds) != 1 || cmds[0].Parent != caller {
		t.Errorf("caller %q, commands %+v", caller, cmds)
	}
	if strings.Count(r.Text(), "sub finished") != 1 {
		t.Errorf("text %q", r.Text())
	}
	if u := r.Usage(); u.Input != 480 {
		t.Errorf("usage without the sub-agent: %+v", u)
	}
}

func TestGoldenQuestion(t *testing.T) {
	raw, err := os.ReadFile("testdata/50-restart-pending-question.sse")
	if err != nil {
		t.Fatal(err)
	}
	var asked []event.Ask
	decodeStream(strings.NewReader(string(raw)), func(e serverEvent) bool {
		var a nativeAsk
		if e.Type == "question.asked" && json.Unmarshal(e.Properties, &a) == nil {
			asked = append(asked, questionAsk("item", a))
		}
		return true
	})
	if len(asked) != 1 || len(asked[0].Questions) != 2 || asked[0].Questions[0].Text != "Which database?" || !asked[0].Questions[0].Free ||
		len(asked[0].Questions[0].Options) != 2 {
		t.Errorf("asks %+v", asked)
	}
}

func FuzzDecoder(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.sse")
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Fuzz(func(t *testing.T, s string) {
		if err := play(s, true).Settled(); err != nil {
			t.Fatal(err)
		}
	})
}
