package executord_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/executord"
	"github.com/tholehq/thole/internal/executord/wire"
)

// counted stands for a proxy's meter.
type counted struct {
	mu  sync.Mutex
	all []egress.Total
}

func (c *counted) set(all ...egress.Total) { c.mu.Lock(); defer c.mu.Unlock(); c.all = all }

func (c *counted) Totals() []egress.Total { c.mu.Lock(); defer c.mu.Unlock(); return c.all }

func (c *counted) Take() []egress.Total {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.all
	c.all = nil
	return all
}

// A run's log has what was sent over the network once, right before its end, however it ends.
func TestNetworkIsRecordedWithTheRun(t *testing.T) {
	meter := &counted{}
	c, _ := serveFull(t, home(t), func(cfg *executord.Config) { cfg.Network = meter })
	hostile := egress.Total{Host: strings.Repeat("x", 5000) + "\xff", Port: 1, Verdict: egress.Refused, Why: strings.Repeat("y", 5000), Sent: -1, Last: time.UnixMilli(5000)}
	sent := egress.Total{Host: "a.com", Port: 443, Verdict: egress.Allowed, Connections: 1, Sent: 10, Received: 20, Last: time.UnixMilli(9000)}
	meter.set(sent, hostile)
	shown, err := c.Network(t.Context(), time.Time{})
	if err != nil || len(shown.Traffic) != 2 || shown.Traffic[0].Host != "a.com" || shown.Traffic[0].Sent != 10 || len(shown.Traffic[1].Host) > 300 || len(shown.Traffic[1].Why) > 300 || shown.Traffic[1].Sent != 0 {
		t.Fatalf("live: %+v, %v", shown, err)
	}
	if later, err := c.Network(t.Context(), time.UnixMilli(6000)); err != nil || len(later.Traffic) != 1 || later.Traffic[0].Host != "a.com" {
		t.Errorf("after 6000: %+v, %v", later, err)
	}

	networks := func(run []wire.LogEvent) (out []event.Event) {
		for i, e := range run {
			if e.Event.Kind == event.NetworkUpdated {
				out = append(out, e.Event)
				if i != len(run)-2 {
					t.Errorf("at %d of %d", i, len(run))
				}
			}
		}
		return out
	}
	got := networks(collect(t, c, start(t, c, request("sim: say hello")), 0, nil))
	if len(got) != 1 || len(got[0].Network) != 2 || got[0].Network[0].Received != 20 {
		t.Fatalf("recorded %+v", got)
	}
	if got := networks(collect(t, c, start(t, c, request("sim: say hello")), 0, nil)); len(got) != 0 {
		t.Errorf("recorded again: %+v", got)
	}
	req := request("sim: run echo x")
	got = networks(collect(t, c, start(t, c, req), 0, func(e wire.LogEvent) {
		if e.Event.Kind == event.AskRequested {
			meter.set(sent)
			if _, err := c.Cancel(t.Context(), wire.CancelRequest{Run: req.Turn.ID, Kill: true}); err != nil {
				t.Error(err)
			}
		}
	}))
	if len(got) != 1 || len(got[0].Network) != 1 {
		t.Errorf("a run that was killed recorded %+v", got)
	}
}
