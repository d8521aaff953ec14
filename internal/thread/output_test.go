package thread_test

import (
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// ran reports a command with an output as a provider does: streamed in pieces, or only at
// its end.
func ran(b *bench, turn thole.TurnID, report func(...event.Event), output string, streamed bool) thole.ItemID {
	b.t.Helper()
	var events []event.Event
	em := provider.NewEmitter(turn, func(e event.Event) { events = append(events, e) })
	id := em.ItemID("c" + output[:1])
	item := event.Item{ID: id, Kind: event.ItemCommand, Command: &event.Command{Line: "make"}}
	em.Start(item)
	for rest := output; streamed && rest != ""; {
		n := min(len(rest), 10_000)
		em.Delta(id, event.StreamOutput, rest[:n])
		rest = rest[n:]
	}
	done := *item.Command
	if !streamed {
		done.Output = output
	}
	item.Command = &done
	em.Complete(item)
	report(events...)
	return id
}

// whole reads an output page by page.
func whole(b *bench, id thole.ThreadID, item thole.ItemID, limit int) (text string, o thread.Output) {
	b.t.Helper()
	for at := int64(0); ; at = o.Next {
		var err error
		if o, err = b.Output(bg, me, id, item, at, limit); err != nil {
			b.t.Fatal(err)
		}
		if len(o.Text) > limit {
			b.t.Fatalf("a page of %d bytes, at most %d", len(o.Text), limit)
		}
		text += o.Text
		if o.Next == 0 {
			return text, o
		}
		if o.Next <= at {
			b.t.Fatalf("page at %d leads to %d", at, o.Next)
		}
	}
}

// An item shows the ends of a long output; all of it can be read, up to a MiB and the end.
func TestTheWholeOutputOfACommand(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		b := newBench(t, open(t), nil)
		th := b.create(thread.Create{})
		numbered := func(n int) string {
			var s strings.Builder
			for i := 0; s.Len() < n; i++ {
				s.WriteString("zeile für zeile ")
				s.WriteString(strings.Repeat("x", i%40))
				s.WriteByte('\n')
			}
			return s.String()
		}
		for _, c := range []struct {
			name     string
			output   string
			streamed bool
			all      bool
		}{
			{"short", "ok\n", true, true},
			{"long, streamed", "a" + numbered(300_000), true, true},
			{"long, at the end", "b" + numbered(300_000), false, true},
			{"longer than is kept, streamed", "c" + numbered(3<<19), true, false},
			{"longer than is kept, at the end", "d" + numbered(3<<19), false, false},
			{"just longer than an item", "e" + numbered(provider.OutputLimit), true, true},
			{"text with zeros", "f\x00" + strings.Repeat("\x00 ", 100_000), true, true},
		} {
			t.Run(c.name, func(t *testing.T) {
				turn, report := b.turn(th.ID, "go")
				item := ran(b, turn.ID, report, c.output, c.streamed)
				report(ends(thole.OutcomeCompleted))
				items, err := b.Items(bg, me, th.ID, turn.ID, all)
				if err != nil {
					t.Fatal(err)
				}
				if got := items.Items[1].Item.Command; len(got.Output) > provider.OutputLimit || int64(len(got.Output))+got.OutputDropped != int64(len(c.output)) {
					t.Errorf("the item has %d bytes and dropped %d of %d", len(got.Output), got.OutputDropped, len(c.output))
				}
				for _, limit := range []int{50_001, 1 << 20} {
					text, o := whole(b, th.ID, item, limit)
					if o.Total != int64(len(c.output)) || o.Open {
						t.Errorf("pages of %d: %+v of %d bytes", limit, o.Total, len(c.output))
					}
					if c.all && (text != c.output || o.Skipped != 0) {
						t.Errorf("pages of %d: %d bytes, %d skipped, want all %d", limit, len(text), o.Skipped, len(c.output))
					}
					if !c.all && (int64(len(text))+o.Skipped != o.Total || !strings.HasPrefix(c.output, text[:1<<20-8]) || !strings.HasSuffix(c.output, text[len(text)-30_000:])) {
						t.Errorf("pages of %d: %d bytes, %d skipped of %d", limit, len(text), o.Skipped, o.Total)
					}
				}
				fork, err := b.Fork(bg, me, th.ID, thread.Fork{UpTo: turn.ID})
				if err != nil {
					t.Fatal(err)
				}
				of, _ := whole(b, th.ID, item, 1<<20)
				if text, _ := whole(b, fork.ID, item, 1<<20); text != of {
					t.Errorf("a fork has %d bytes of %d", len(text), len(of))
				}
			})
		}
		_, report := b.turn(th.ID, "still")
		id := thole.ItemID("running")
		report(event.Event{Kind: event.ItemStarted, Data: event.Data{Item: &event.Item{ID: id, Kind: event.ItemCommand, Command: &event.Command{Line: "make"}}}},
			event.Event{Kind: event.ItemDelta, Data: event.Data{ItemID: id, Stream: event.StreamOutput, Delta: "so far"}}, said("m", "no command"))
		if o, err := b.Output(bg, me, th.ID, id, 0, 0); err != nil || o.Text != "so far" || !o.Open {
			t.Errorf("a command that runs: %+v, %v", o, err)
		}
		for _, none := range []thole.ItemID{"m", "nothing"} {
			if _, err := b.Output(bg, me, th.ID, none, 0, 0); thole.CodeOf(err) != thole.CodeNotFound {
				t.Errorf("output of %s: %v", none, err)
			}
		}
		stranger := thole.Actor{User: "00000000-0000-7000-8000-00000000aaaa", Via: "token"}
		if _, err := b.Output(bg, stranger, th.ID, id, 0, 0); thole.CodeOf(err) != thole.CodeNotFound {
			t.Errorf("a stranger: %v", err)
		}
		if _, err := b.Output(bg, me, th.ID, id, -1, 0); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("a negative offset: %v", err)
		}
	})
}
