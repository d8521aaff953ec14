package cli

import (
	"context"
	"io"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/gateway/calls"
	"github.com/tholehq/thole/protocol/app"
)

// turnCalls are the recorded model calls of one turn.
type turnCalls struct {
	Turn  thole.TurnID `json:"turn"`
	Calls []calls.Call `json:"calls"`
}

// recordedCalls lists them by turn, the oldest first. That there are none because nobody
// asked for a record is an error that says how to ask.
func (e *Env) recordedCalls(ctx context.Context, thread thole.ThreadID, turns []app.Turn) ([]turnCalls, error) {
	out, some, recording := []turnCalls{}, false, false
	for i := len(turns) - 1; i >= 0; i-- {
		id := thole.TurnID(turns[i].ID)
		var r executors.CallsResult
		if err := e.ask(ctx, executors.MethodCalls, executors.CallsParams{Thread: thread, Turn: id}, &r); err != nil {
			return nil, err
		}
		some, recording = some || len(r.Calls) > 0, r.Recording
		out = append(out, turnCalls{Turn: id, Calls: r.Calls})
	}
	if len(turns) > 0 && !some && !recording {
		return nil, thole.Errorf(thole.CodeNotFound, "no model calls were recorded").WithHint("set gateway.record = true, and the calls of later turns are")
	}
	return out, nil
}

func printCalls(w io.Writer, list []turnCalls) {
	for _, t := range list {
		for _, c := range t.Calls {
			putf(w, "call %s %s at %s: ", c.At.Local().Format(time.DateTime), c.Model, c.Upstream)
			switch {
			case !c.Ended:
				putf(w, "not ended")
			case c.Error != "":
				putf(w, "%d, %s", c.Status, c.Error)
			default:
				putf(w, "%d", c.Status)
			}
			if c.Ended {
				u := c.Usage
				putf(w, ", %s, %d in, %d cached, %d out", c.Took.Round(time.Millisecond), u.Input, u.CacheRead, u.Output+u.Reasoning)
				if !c.Known {
					putf(w, " at most")
				}
			}
			if c.Waited >= time.Millisecond {
				putf(w, ", waited %s", c.Waited.Round(time.Millisecond))
			}
			putf(w, "\n  %s\n  %s\n", c.Request, c.Response)
		}
	}
}
