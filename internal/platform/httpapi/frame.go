package httpapi

import (
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/thread"
)

// frame is one event, or a run of neighbouring deltas, as server-sent data.
type frame struct {
	thread thole.ThreadID
	seq    uint64
	data   []byte
}

// run names an encoding: what its first batch began and the one that keeps it ended.
type run struct{ first *thread.Batch }

// frames encodes what a reader collected, once for all readers that collected the
// same: they wake at the same few moments. Neighbouring deltas become one.
func frames(batches ...*thread.Batch) []frame {
	return batches[len(batches)-1].Encode(run{batches[0]}, func() any {
		var all []event.Event
		for _, b := range batches {
			all = append(all, b.Events...)
		}
		out := make([]frame, 0, len(all))
		for i := 0; i < len(all); {
			e := all[i]
			end, text := e, []byte(e.Delta)
			for i++; i < len(all) && thread.Continues(&end, &all[i]); i++ {
				end = all[i]
				text = append(text, end.Delta...)
			}
			e.Delta = string(text)
			out = append(out, frame{e.Thread, e.Seq, encode(e)})
		}
		return out
	}).([]frame)
}

func encode(e event.Event) []byte {
	b, err := json.Marshal(view.OfEvent(e))
	if err != nil {
		panic("httpapi: encode event: " + err.Error())
	}
	return append(append([]byte("data: "), b...), "\n\n"...)
}
