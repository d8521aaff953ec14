package turnstart_test

import (
	"os"
	"sync/atomic"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/channeltest"
	"github.com/tholehq/thole/internal/channel/turnstart"
)

// TestConformance is the channel's contract on a real app-server.
func TestConformance(t *testing.T) {
	t.Parallel()
	c := newCodex(t)
	channeltest.Conform(t, func(t *testing.T) *channeltest.Receiver { return c.receiver(t) })
}

// receiver is a thread of the server, seen through a lens.
func (c *codex) receiver(t *testing.T) *channeltest.Receiver {
	var glitch, impostor atomic.Bool
	r := c.rigOn(t, c.join(), newStore(t), nil)
	l := newLens(t, c.sock, func(method string, body map[string]any) bool {
		if all := turnsIn(body); method == "thread/turns/list" && len(all) > 0 && glitch.Swap(false) {
			as("interrupted", 7)(all[0])
		}
		return true
	})
	r.through(l.addr())
	ch := turnstart.New(r.s, nil)
	ch.ServerOf(func() int {
		if impostor.Load() {
			return os.Getpid()
		}
		return c.pid
	})
	t.Cleanup(ch.Close)
	return &channeltest.Receiver{
		Channel: ch, Query: channel.Query{User: thole.LocalUser, Endpoint: c.home, Thread: thole.ThreadID(r.thread), Batch: "b"},
		Attachment: "att", Short: "sim: wait 1s ;; say got it", Long: "sim: say before ;; hang",
		Interrupt: func(turn thole.TurnID) {
			r.must("turn/interrupt", map[string]any{"turnId": string(turn)}, nil)
		},
		Occupy: func() thole.TurnID {
			turn := r.say("sim: say mine ;; hang")
			r.asked("say mine")
			return thole.TurnID(turn)
		},
		Glitch: func() { glitch.Store(true) },
		Impostor: func() func() int {
			impostor.Store(true)
			return func() int { return int(l.asked.Load()) }
		},
		Deliveries: r.carrying,
	}
}
