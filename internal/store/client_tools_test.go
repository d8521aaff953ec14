package store_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// A thread's tools and a turn's schema are there for the next process, and a fork has both.
func TestClientToolsAndSchemasAreKept(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db := open(t)
		machine := func() *thread.Machine {
			m, err := thread.New(thread.Config{Store: db.Threads()})
			if err == nil {
				err = m.Start(context.Background())
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = m.Close(context.Background()) })
			return m
		}
		ctx, me := t.Context(), thole.LocalActor
		tools := []event.ClientTool{
			{Name: "lookup", Description: "d", Schema: json.RawMessage(`{"type":"object"}`)},
			{Name: "shop", Description: "s", Tools: []event.ClientTool{{Name: "price", Schema: json.RawMessage(`{}`), Deferred: true}}},
		}
		schema := json.RawMessage(`{"type":"object","description":"\u0000 and ü"}`)
		first := machine()
		th, err := first.Create(ctx, me, thread.Create{Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		turn, err := first.StartTurn(ctx, me, thread.StartTurn{Thread: th.ID, Input: thole.Text("x"), Schema: schema})
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Interrupt(ctx, me, th.ID, turn.ID); err != nil { // nobody has it: it ends
			t.Fatal(err)
		}
		plain, err := first.StartTurn(ctx, me, thread.StartTurn{Thread: th.ID, Input: thole.Text("x")})
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Interrupt(ctx, me, th.ID, plain.ID); err != nil {
			t.Fatal(err)
		}
		if err := first.Close(ctx); err != nil {
			t.Fatal(err)
		}
		next := machine()
		fork, err := next.Fork(ctx, me, th.ID, thread.Fork{})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []thole.ThreadID{th.ID, fork.ID} {
			got, err := next.Get(ctx, me, id)
			if err != nil || !reflect.DeepEqual(got.Tools, tools) {
				t.Errorf("tools %+v: %v", got.Tools, err)
			}
			kept, err := next.Turn(ctx, me, id, turn.ID)
			if err != nil || string(kept.Schema) != string(schema) {
				t.Errorf("schema %s: %v", kept.Schema, err)
			}
			kept, err = next.Turn(ctx, me, id, plain.ID)
			if err != nil || kept.Schema != nil {
				t.Errorf("schema %s: %v", kept.Schema, err)
			}
		}
	})
}
