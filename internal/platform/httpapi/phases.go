package httpapi

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// runPhase is one phase of a run and when it began.
type runPhase struct {
	Phase thole.Phase `json:"phase" enum:"queued,claimed,restoring,linking,preparing,running,waiting_human,syncing,exported,succeeded,failed,canceled"`
	At    time.Time   `json:"at"`
}

// phases reads which phases a run went through, oldest first, from the log. Where
// the log of the run is no longer kept, what its record says remains.
func (s *Server) phases(ctx context.Context, t fold.Turn) ([]runPhase, error) {
	out := []runPhase{{thole.PhaseQueued, t.Created}}
	mark := func(p thole.Phase, at time.Time) {
		if out[len(out)-1].Phase != p {
			out = append(out, runPhase{p, at})
		}
	}
	th, err := s.cfg.Threads.Get(ctx, actorOf(ctx), t.Thread)
	if err != nil {
		return nil, err
	}
	if t.Seq <= th.Floor {
		if !t.Stamp.Ended.IsZero() {
			mark(t.Phase, t.Stamp.Ended)
		}
		return out, nil
	}
	waits := map[thole.AskID]bool{}
	after := t.Seq - 1
	for range logPages {
		events, err := s.cfg.Threads.Events(ctx, actorOf(ctx), t.Thread, after, logPage)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			after = e.Seq
			if e.Turn != t.ID {
				continue
			}
			switch e.Kind {
			case event.TurnPhase:
				mark(e.Data.Phase, e.Time)
				if e.Data.Phase.Terminal() {
					return out, nil
				}
			case event.TurnEnded: // its files are saved after it, unless no executor had begun
				if out[len(out)-1].Phase != thole.PhaseQueued {
					mark(thole.PhaseSyncing, e.Time)
				}
			case event.AskRequested:
				waits[e.Data.Ask.ID] = true
				mark(thole.PhaseWaitingHuman, e.Time)
			case event.AskResolved:
				delete(waits, e.Data.AskID)
				if len(waits) == 0 && out[len(out)-1].Phase == thole.PhaseWaitingHuman {
					mark(thole.PhaseRunning, e.Time)
				}
			}
		}
		if len(events) < logPage {
			break
		}
	}
	return out, nil
}

func (s *Server) phaseRoutes() {
	op(s, "GET", "/runs/{run_id}/phases", "The phases that a run went through, oldest first", 200, func(ctx context.Context, in *RunID) (*body[list[runPhase]], error) {
		t, err := s.run(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		out, err := s.phases(ctx, t)
		return answer(list[runPhase]{Items: out}, err)
	})
}
