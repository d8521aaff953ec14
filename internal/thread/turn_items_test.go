package thread_test

import (
	"fmt"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

func begun(id string) event.Event {
	return event.Event{Kind: event.ItemStarted, Data: event.Data{Item: &event.Item{ID: thole.ItemID(id), Kind: event.ItemMessage}}}
}

func ids(items []fold.ItemRecord) string {
	var out []string
	for _, r := range items {
		if r.Item.Kind != event.ItemUserMessage {
			out = append(out, string(r.Item.ID))
		}
	}
	return strings.Join(out, " ")
}

// The items of many turns are those of each, in order, in flight with their text so
// far; a turn that was not asked for is not there.
func TestTurnItems(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		b := newBench(t, open(t), nil)
		id, other := b.create(thread.Create{}).ID, b.create(thread.Create{}).ID
		var turns []thole.TurnID
		for i := range 4 {
			turn, report := b.turn(id, "question")
			tool := event.Event{Kind: event.ItemCompleted, Data: event.Data{Item: &event.Item{ID: "tool", Kind: event.ItemTool, Tool: &event.ToolCall{Name: "x"}}}}
			report(tool, said("a", fmt.Sprint("answer ", i)))
			turns = append(turns, turn.ID)
			if i < 3 {
				report(ends(thole.OutcomeCompleted))
			} else {
				report(begun("open"), event.Event{Kind: event.ItemDelta, Data: event.Data{ItemID: "open", Stream: event.StreamText, Delta: "so far"}})
			}
		}
		_, report := b.turn(other, "another thread")
		report(said("a", "not this"), ends(thole.OutcomeCompleted))
		all, err := b.TurnItems(bg, me, id, append(turns[1:], "none"), false)
		if err != nil {
			t.Fatal(err)
		}
		if _, there := all[turns[0]]; there || len(all) != 4 || len(all["none"]) != 0 {
			t.Errorf("%d turns: %v", len(all), all)
		}
		if got := ids(all[turns[1]]) + "|" + ids(all[turns[3]]); got != "tool a|tool a open" {
			t.Errorf("items %s", got)
		}
		last := all[turns[3]]
		if r := last[len(last)-1]; !r.Open || r.Item.Text != "so far" {
			t.Errorf("the item in flight is %+v", r)
		}
		spoken, err := b.TurnItems(bg, me, id, turns[:1], true)
		if err != nil || ids(spoken[turns[0]]) != "a" || len(spoken[turns[0]]) != 2 {
			t.Errorf("what was said: %v, %v", spoken, err)
		}
		if _, err := b.TurnItems(bg, thole.Actor{User: "00000000-0000-7000-8000-00000000aaaa", Via: "token"}, id, turns, false); thole.CodeOf(err) != thole.CodeNotFound {
			t.Errorf("a stranger got %v", err)
		}
		none, err := b.TurnItems(bg, me, id, nil, false)
		if err != nil || len(none) != 0 {
			t.Errorf("no turns: %v, %v", none, err)
		}
	})
}

// Beyond the bound whole turns are missing, the oldest ones, and never a part of one.
func TestTurnItemsAreBounded(t *testing.T) {
	b := newBench(t, storetest.SQLite(t), nil)
	id := b.create(thread.Create{}).ID
	var turns []thole.TurnID
	for range 3 {
		turn, report := b.turn(id, "many")
		turns = append(turns, turn.ID)
		for part := range 8 {
			var events []event.Event
			for i := range thread.MaxTurnItems / 20 {
				events = append(events, said(fmt.Sprintf("%d-%d", part, i), "x"))
			}
			report(events...)
		}
		report(ends(thole.OutcomeCompleted))
	}
	all, err := b.TurnItems(bg, me, id, turns, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, there := all[turns[0]]; there || len(all) != 2 {
		t.Errorf("%d turns", len(all))
	}
	for _, turn := range turns[1:] {
		if n := len(all[turn]); n != thread.MaxTurnItems*8/20+1 {
			t.Errorf("a turn has %d items", n)
		}
	}
}

// The pages that begin with a snapshot's cursor have what it has complete, and nothing
// that completed or began since.
func TestSnapshotPages(t *testing.T) {
	b := newBench(t, storetest.SQLite(t), nil)
	id := b.create(thread.Create{}).ID
	_, report := b.turn(id, "x")
	report(said("one", "1"), begun("two"), said("three", "3"), begun("four"))
	sub, err := b.Subscribe(bg, me, id, thread.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	report(said("two", "2"), said("four", "4"), said("five", "5"))
	var got []fold.ItemRecord
	p := thread.PageParams{Cursor: sub.Snapshot.ItemsCursor(), Desc: true, Limit: 2}
	for {
		page, err := b.Items(bg, me, id, "", p)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, page.Items...)
		if page.Next == "" {
			break
		}
		p.Cursor = page.Next
	}
	if s := ids(got); s != "three one" {
		t.Errorf("the pages have %s", s)
	}
}
