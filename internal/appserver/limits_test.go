package appserver_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/thread"
)

// What an agent reports of its account's limits reaches the clients of the contract:
// the first two windows, and of each only what is known.
func TestLimitsAreTold(t *testing.T) {
	ctx := context.Background()
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{"approvalPolicy":"never","sandbox":"danger-full-access"}`)
	w.turn(id, "sim: ask Go on? | yes")
	_, _ = w.note(0, "item/tool/requestUserInput")
	th, err := rig.Threads.Get(ctx, thole.LocalActor, thole.ThreadID(id))
	if err != nil {
		t.Fatal(err)
	}
	ref := thread.TurnRef{Thread: th.ID, Turn: th.Open}
	if err := rig.Store().View(ctx, func(tx *sqldb.Tx) error { // what the agent reports comes with the lease
		return tx.QueryRow(`select lease_token from turn_queue where turn_id = $1`, ref.Turn).Scan(&ref.Token)
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		limits []event.Limit
		want   string
	}{
		{[]event.Limit{{Name: "primary", Used: 82, Window: 300, Resets: time.Unix(1794790800, 0)}, {Name: "secondary", Used: 3}, {Name: "third", Used: 1}},
			`{"primary":{"resetsAt":1794790800,"usedPercent":82,"windowDurationMins":300},"secondary":{"resetsAt":null,"usedPercent":3,"windowDurationMins":null}}`},
		{[]event.Limit{{Name: "weekly"}}, `{"primary":{"resetsAt":null,"usedPercent":0,"windowDurationMins":null},"secondary":null}`},
	} {
		from := w.len()
		e := event.Event{ID: thole.EventID(c.limits[0].Name), Kind: event.LimitsUpdated, Turn: ref.Turn, Data: event.Data{Limits: c.limits}}
		if err := rig.Threads.Apply(ctx, ref, []event.Event{e}); err != nil {
			t.Fatal(err)
		}
		_, note := w.note(from, "account/rateLimits/updated")
		if got, err := json.Marshal(note.field("rateLimits")); err != nil || string(got) != c.want {
			t.Errorf("told %s, want %s; %v", got, c.want, err)
		}
	}
}
