package driver_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel/channeltest"
	"github.com/tholehq/thole/internal/testkit/fault"
)

// Every call of the store and of the channel fails once, before or after its
// effect. The result is delivered all the same, as one turn: an error says nothing
// about what happened, and a living host proves it.
func TestEveryPortFailsOnce(t *testing.T) {
	for method, calls := range map[string]int{"Store.Update": 6, "Store.View": 3, "Channel.Probe": 1, "Channel.Propose": 1, "Channel.Observe": 1} {
		for at := 1; at <= calls; at++ {
			for _, when := range []fault.When{fault.Before, fault.After} {
				t.Run(fmt.Sprint(when, " ", method, " ", at), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { failOnce(t, &fault.Plan{At: at, Method: method, When: when}) })
				})
			}
		}
	}
}

func failOnce(t *testing.T, plan *fault.Plan) {
	w := newFaultyWorld(t, channeltest.New(nil), plan)
	defer func() { w.stop() }()
	w.job("a")
	later(2 * time.Minute)
	if !plan.Fired() {
		t.Error("the planned fault never happened")
	}
	b := w.only()
	if b.CloseReason != thole.CloseDelivered || w.host.Taken(b.ID) != 1 || b.AttemptCount != 1 {
		t.Errorf("closed as %q, held for %q, taken %d times, %d counted", b.CloseReason, b.HeldFor, w.host.Taken(b.ID), b.AttemptCount)
	}
	w.check()
}
