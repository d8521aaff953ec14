package provider_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
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
		em := provider.NewEmitter(turn, func(e event.Event) { r = append(r, e) })
		id := func() thole.ItemID { return em.ItemID(fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "item"))) }
		kinds := map[thole.ItemID]event.ItemKind{}
		item := func() event.Item {
			i := event.Item{ID: id()}
			if kinds[i.ID] == "" {
				kinds[i.ID] = rapid.SampledFrom([]event.ItemKind{event.ItemMessage, event.ItemCommand, event.ItemTool}).Draw(t, "kind")
			}
			if i.Kind = kinds[i.ID]; i.Kind == event.ItemCommand {
				i.Command = &event.Command{Line: "x", Output: strings.Repeat("o", rapid.SampledFrom([]int{0, 10, 200_000}).Draw(t, "output"))}
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
				em.Delta(id(), rapid.SampledFrom([]event.Stream{event.StreamText, event.StreamOutput, event.StreamSummary}).Draw(t, "stream"), "some text")
			},
			"update": func(t *rapid.T) {
				em.Update(item())
			},
			"complete": func(t *rapid.T) {
				em.Complete(item())
			},
			"cut": func(t *rapid.T) {
				em.Cut(id(), event.StateFailed)
			},
			"step":     func(t *rapid.T) { em.StepStarted() },
			"reset":    func(t *rapid.T) { em.StepReset() },
			"end step": func(t *rapid.T) { em.StepEnded() },
			"ask": func(t *rapid.T) {
				asks++
				em.Ask(event.Ask{ID: em.AskID(fmt.Sprint(asks)), Kind: event.AskInput})
			},
			"resolve": func(t *rapid.T) {
				em.Resolve(em.AskID(fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "ask"))), &event.Answer{})
			},
			"usage": func(t *rapid.T) { em.Usage(thole.Usage{Input: 1}) },
			"note":  func(t *rapid.T) { em.Note("n") },
		})
		em.End(provider.Ended{Outcome: thole.OutcomeInterrupted})
		em.Note("too late")
		em.Delta(id(), event.StreamText, "too late")
		em.End(provider.Ended{Outcome: thole.OutcomeCompleted})
		if err := providertest.Check(turn, r); err != nil {
			t.Fatalf("%v\n%s", err, r)
		}
	})
}

func TestEmitterCompletesWithWhatStreamed(t *testing.T) {
	var r providertest.Record
	em := provider.NewEmitter(turn, func(e event.Event) { r = append(r, e) })
	msg, cmd := em.ItemID("m"), em.ItemID("c")
	em.Start(event.Item{ID: msg, Kind: event.ItemMessage})
	em.Start(event.Item{ID: cmd, Kind: event.ItemCommand, Command: &event.Command{Line: "seq"}})
	em.Delta(msg, event.StreamText, "half a ")
	for range 1000 {
		em.Delta(cmd, event.StreamOutput, strings.Repeat("x", 1000)+"\n")
	}
	// The CLI itself repeats only a part of the output.
	em.Complete(event.Item{ID: cmd, Kind: event.ItemCommand, Command: &event.Command{Line: "seq", Output: "a part"}})
	em.End(provider.Ended{Outcome: thole.OutcomeInterrupted})
	if got := r.Text(); got != "half a " {
		t.Errorf("text %q", got)
	}
	c := r.Items(event.ItemCommand)[0].Command
	if len(c.Output) > provider.OutputLimit || int64(len(c.Output))+c.OutputDropped != 1_001_000 {
		t.Errorf("kept %d, dropped %d", len(c.Output), c.OutputDropped)
	}
}

func TestStepResetForgetsOpenItems(t *testing.T) {
	var r providertest.Record
	em := provider.NewEmitter(turn, func(e event.Event) { r = append(r, e) })
	tool := em.ItemID("tool")
	em.StepStarted()
	em.Start(event.Item{ID: tool, Kind: event.ItemTool})
	em.StepStarted()
	em.Start(event.Item{ID: em.ItemID("a"), Kind: event.ItemMessage})
	em.Delta(em.ItemID("a"), event.StreamText, "lost")
	em.StepReset()
	em.Complete(event.Item{ID: em.ItemID("b"), Kind: event.ItemMessage, Text: "kept"})
	if _, open := em.Opened(tool); !open {
		t.Error("an item of an earlier step was dropped")
	}
	em.Complete(event.Item{ID: tool, Kind: event.ItemTool})
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
	var last event.Event
	em := provider.NewEmitter(turn, func(e event.Event) { last = e })
	em.Start(event.Item{ID: "i", Kind: event.ItemMessage})
	em.Delta("i", event.StreamText, "four")
	em.Delta("i", event.StreamText, "more")
	if want := provider.StableID[thole.EventID]("event", string(turn), "item.delta", "i/text/4"); last.ID != want || last.Turn != turn || last.Time.IsZero() {
		t.Errorf("delta %+v, want id %s", last, want)
	}
}

// A turn that was asked to stop was interrupted, unless it had completed: an error
// that the CLI reports because of it does not count.
func TestInterruptedTurnEndsInterrupted(t *testing.T) {
	for given, want := range map[thole.Outcome]thole.Outcome{
		thole.OutcomeFailed: thole.OutcomeInterrupted, thole.OutcomeInterrupted: thole.OutcomeInterrupted, thole.OutcomeCompleted: thole.OutcomeCompleted,
	} {
		var last event.Event
		em := provider.NewEmitter("turn", func(e event.Event) { last = e })
		em.Interrupt()
		em.End(provider.Ended{Outcome: given, Error: provider.Failure(thole.ErrProviderCrashed, "killed", 0)})
		if got := provider.EndedOf(last); got.Outcome != want || want == thole.OutcomeInterrupted && got.Error != nil {
			t.Errorf("%s after a stop: %+v", given, got)
		}
	}
}

// A turn that is stopped while it parks is interrupted, and its ask does not stay.
func TestAStopUndoesAPark(t *testing.T) {
	var got []event.Event
	em := provider.NewEmitter("turn", func(e event.Event) { got = append(got, e) })
	em.Ask(event.Ask{ID: "a", Kind: event.AskCommand})
	if !em.Park("a") || em.Park("b") {
		t.Fatal("parked on what was not asked")
	}
	em.Resolve("a", nil)
	em.Interrupt()
	em.End(provider.Ended{Outcome: thole.OutcomeFailed})
	last := got[len(got)-1]
	if last.Kind != event.TurnEnded || last.Outcome != thole.OutcomeInterrupted || last.AskID != "" || got[len(got)-2].Kind != event.AskResolved {
		t.Fatalf("%+v", got)
	}
}

// Nobody is asked about a command or an edit that its item does not show.
func TestAnAskShowsWhatItIsAbout(t *testing.T) {
	change := []event.FileChange{{Path: "f", Kind: "add", Diff: "+x\n"}}
	for name, c := range map[string]struct {
		item  event.Item
		ask   event.Ask
		shown bool
	}{
		"a command":           {event.Item{Kind: event.ItemCommand, Command: &event.Command{Dir: "/w"}}, event.Ask{Kind: event.AskCommand, Command: "ls"}, true},
		"an edit":             {event.Item{Kind: event.ItemFileChange}, event.Ask{Kind: event.AskFileChange, Changes: change}, true},
		"a shown command":     {event.Item{Kind: event.ItemCommand, Command: &event.Command{Line: "ls -l"}}, event.Ask{Kind: event.AskCommand, Command: "ls"}, false},
		"a question":          {event.Item{Kind: event.ItemTool, Tool: &event.ToolCall{}}, event.Ask{Kind: event.AskInput}, false},
		"nothing of a turn's": {event.Item{Kind: event.ItemMessage}, event.Ask{Kind: event.AskCommand, Command: "ls", Item: "other"}, false},
	} {
		var got []event.Event
		em := provider.NewEmitter("t", func(e event.Event) { got = append(got, e) })
		c.item.ID = "i"
		if c.ask.Item == "" {
			c.ask.Item = "i"
		}
		em.Start(c.item)
		em.Ask(c.ask)
		shown := got[1].Kind == event.ItemUpdated
		if shown != c.shown || got[len(got)-1].Kind != event.AskRequested {
			t.Errorf("%s: %d events, the second is %s", name, len(got), got[1].Kind)
		}
		if i := got[1].Item; shown && (i.Command != nil && i.Command.Line+i.Command.Dir != "ls/w" || i.Command == nil && len(i.Changes) != 1) {
			t.Errorf("%s: it shows %+v", name, i)
		}
	}
}
