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
// effect. Two results are delivered all the same, each as one turn: an error says
// nothing about what happened, and a living host proves it.
func TestEveryPortFailsOnce(t *testing.T) {
	for method, calls := range map[string]int{"Store.Update": 12, "Store.View": 3, "Channel.Probe": 2, "Channel.Propose": 2, "Channel.Observe": 2} {
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
	later(time.Second)
	w.job("b")
	later(5 * time.Minute)
	if !plan.Fired() {
		t.Error("the planned fault never happened")
	}
	for _, v := range w.batches() {
		if v.Batch.CloseReason != thole.CloseDelivered || w.host.Taken(v.Batch.ID) != 1 || v.Batch.AttemptCount != 1 {
			t.Errorf("closed as %q, held for %q, taken %d times, %d counted", v.Batch.CloseReason, v.Batch.HeldFor, w.host.Taken(v.Batch.ID), v.Batch.AttemptCount)
		}
	}
	if n := len(w.batches()); n != 2 {
		t.Errorf("%d batches", n)
	}
	w.check()
}
