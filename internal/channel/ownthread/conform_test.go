package ownthread_test

import (
	"context"
	"sync/atomic"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/channeltest"
	"github.com/tholehq/thole/internal/channel/ownthread"
	"github.com/tholehq/thole/internal/thread"
)

// glitching shows a turn as interrupted in one read.
type glitching struct {
	ownthread.Threads
	now atomic.Bool
}

func (g *glitching) Turn(ctx context.Context, a thole.Actor, id thole.ThreadID, turn thole.TurnID) (fold.Turn, error) {
	t, err := g.Threads.Turn(ctx, a, id, turn)
	if g.now.Swap(false) {
		t.Outcome = thole.OutcomeInterrupted
	}
	return t, err
}

// TestConformance is the channel's contract on a thread of thole's own.
func TestConformance(t *testing.T) {
	w := newWorld(t)
	channeltest.Conform(t, func(t *testing.T) *channeltest.Receiver {
		id := w.thread()
		threads := &glitching{Threads: w.Threads}
		return &channeltest.Receiver{
			Channel: &ownthread.Channel{Threads: threads, Home: w.Home}, Query: channel.Query{User: thole.LocalUser, Thread: id, Batch: "b"},
			Attachment: thole.AttachmentID(id), Short: "sim: wait 1s ;; say got it", Long: "sim: hang",
			Interrupt: func(turn thole.TurnID) {
				if err := w.Threads.Interrupt(bg, me, id, turn); err != nil {
					t.Error(err)
				}
			},
			Occupy: func() thole.TurnID {
				turn, err := w.Threads.StartTurn(bg, me, thread.StartTurn{Thread: id, Input: thole.Text("sim: hang")})
				if err != nil {
					t.Error(err)
				}
				return turn.ID
			},
			Glitch:     func() { threads.now.Store(true) },
			Deliveries: func() int { return w.carrying(id) },
		}
	})
}
