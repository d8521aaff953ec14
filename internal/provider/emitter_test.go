package provider_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/providertest"
	"pgregory.net/rapid"
)

const turn = thole.TurnID("01a1dd41-0000-7000-8000-000000000001")

// Whatever a driver does to an emitter, the stream that leaves it keeps the
// promises of the port.
func TestEmitterKeepsThePromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r providertest.Record
		em := provider.NewEmitter(turn, func(e provider.Event) { r = append(r, e) })
		id := func() thole.ItemID { return em.ItemID(fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "item"))) }
		kinds := map[thole.ItemID]thole.ItemKind{}
		item := func() thole.Item {
			i := thole.Item{ID: id()}
			if kinds[i.ID] == "" {
				kinds[i.ID] = rapid.SampledFrom([]thole.ItemKind{thole.ItemMessage, thole.ItemCommand, thole.ItemTool}).Draw(t, "kind")
			}
			if i.Kind = kinds[i.ID]; i.Kind == thole.ItemCommand {
				i.Command = &thole.Command{Line: "x", Output: strings.Repeat("o", rapid.SampledFrom([]int{0, 10, 200_000}).Draw(t, "output"))}
			}
			return i
		}
		asks := 0
		t.Repeat(map[string]func(*rapid.T){
			"start": func(t *rapid.T) {
				i := item()
				i.Command = nil
				em.Start(i)
			},
			"delta": func(t *rapid.T) {
				em.Delta(id(), rapid.SampledFrom([]provider.Stream{provider.StreamText, provider.StreamOutput, provider.StreamSummary}).Draw(t, "stream"), "some text")
			},
			"update": func(t *rapid.T) {
				em.Update(item())
			},
			"complete": func(t *rapid.T) {
				em.Complete(item())
			},
			"cut": func(t *rapid.T) {
				em.Cut(id(), thole.ItemFailed)
			},
			"step":     func(t *rapid.T) { em.StepStarted() },
			"reset":    func(t *rapid.T) { em.StepReset() },
			"end step": func(t *rapid.T) { em.StepEnded() },
			"ask": func(t *rapid.T) {
				asks++
				em.Ask(thole.Ask{ID: em.AskID(fmt.Sprint(asks)), Kind: thole.AskInput})
			},
			"resolve": func(t *rapid.T) {
				em.Resolve(em.AskID(fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "ask"))), &thole.Answer{})
			},
			"usage": func(t *rapid.T) { em.Usage(thole.Usage{Input: 1}) },
			"note":  func(t *rapid.T) { em.Note("n") },
		})
		em.End(provider.Ended{Outcome: thole.OutcomeInterrupted})
		em.Note("too late")
		em.Delta(id(), provider.StreamText, "too late")
		em.End(provider.Ended{Outcome: thole.OutcomeCompleted})
		if err := providertest.Check(turn, r); err != nil {
			t.Fatalf("%v\n%s", err, r)
		}
	})
}

func TestEmitterCompletesWithWhatStreamed(t *testing.T) {
	var r providertest.Record
	em := provider.NewEmitter(turn, func(e provider.Event) { r = append(r, e) })
	msg, cmd := em.ItemID("m"), em.ItemID("c")
	em.Start(thole.Item{ID: msg, Kind: thole.ItemMessage})
	em.Start(thole.Item{ID: cmd, Kind: thole.ItemCommand, Command: &thole.Command{Line: "seq"}})
	em.Delta(msg, provider.StreamText, "half a ")
	for range 1000 {
		em.Delta(cmd, provider.StreamOutput, strings.Repeat("x", 1000)+"\n")
	}
	// The CLI itself repeats only a part of the output.
	em.Complete(thole.Item{ID: cmd, Kind: thole.ItemCommand, Command: &thole.Command{Line: "seq", Output: "a part"}})
	em.End(provider.Ended{Outcome: thole.OutcomeInterrupted})
	if got := r.Text(); got != "half a " {
		t.Errorf("text %q", got)
	}
	c := r.Items(thole.ItemCommand)[0].Command
	if len(c.Output) > provider.OutputLimit || int64(len(c.Output))+c.OutputDropped != 1_001_000 {
		t.Errorf("kept %d, dropped %d", len(c.Output), c.OutputDropped)
	}
}

func TestStepResetForgetsOpenItems(t *testing.T) {
	var r providertest.Record
	em := provider.NewEmitter(turn, func(e provider.Event) { r = append(r, e) })
	tool := em.ItemID("tool")
	em.StepStarted()
	em.Start(thole.Item{ID: tool, Kind: thole.ItemTool})
	em.StepStarted()
	em.Start(thole.Item{ID: em.ItemID("a"), Kind: thole.ItemMessage})
	em.Delta(em.ItemID("a"), provider.StreamText, "lost")
	em.StepReset()
	em.Complete(thole.Item{ID: em.ItemID("b"), Kind: thole.ItemMessage, Text: "kept"})
	if _, open := em.Opened(tool); !open {
		t.Error("an item of an earlier step was dropped")
	}
	em.Complete(thole.Item{ID: tool, Kind: thole.ItemTool})
	em.End(provider.Ended{Outcome: thole.OutcomeCompleted})
	if r.Text() != "kept" {
		t.Errorf("text %q", r.Text())
	}
}

func TestOutputIsHeadAndTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o provider.Output
		var all strings.Builder
		for range rapid.IntRange(0, 30).Draw(t, "writes") {
			s := strings.Repeat(rapid.SampledFrom([]string{"a", "é", "漢", "🙂", "line\n"}).Draw(t, "piece"), rapid.IntRange(0, 9000).Draw(t, "times"))
			o.Write(s)
			all.WriteString(s)
		}
		got, dropped := o.Text()
		want := all.String()
		if int64(len(got))+dropped != int64(len(want)) || len(got) > provider.OutputLimit || !utf8.ValidString(got) {
			t.Fatalf("kept %d, dropped %d of %d, valid %v", len(got), dropped, len(want), utf8.ValidString(got))
		}
		if dropped == 0 && got != want {
			t.Fatal("changed a short text")
		}
		if dropped > 0 && (dropped > int64(len(want)-provider.OutputLimit+2*utf8.UTFMax) || !strings.HasPrefix(want, got[:1000]) || !strings.HasSuffix(want, got[len(got)-1000:])) {
			t.Fatal("not the beginning and the end")
		}
	})
}

func TestStableID(t *testing.T) {
	a, b := provider.StableID[string]("x", "y"), provider.StableID[string]("xy", "")
	if a == b || a != provider.StableID[string]("x", "y") || !thole.ValidUUID(a) {
		t.Errorf("ids %s %s", a, b)
	}
	var last provider.Event
	em := provider.NewEmitter(turn, func(e provider.Event) { last = e })
	em.Start(thole.Item{ID: "i", Kind: thole.ItemMessage})
	em.Delta("i", provider.StreamText, "four")
	em.Delta("i", provider.StreamText, "more")
	if want := provider.StableID[thole.EventID]("event", string(turn), "item.delta", "i/text/4"); last.ID != want || last.Turn != turn || last.Time.IsZero() {
		t.Errorf("delta %+v, want id %s", last, want)
	}
}
