package httpapi

import (
	"encoding/json"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/thread"
)

// frame is one event, or a run of neighbouring deltas, as server-sent data.
type frame struct {
	event event.Event
	data  []byte
}

type sse struct{} // names this encoding of a batch

// frames encodes a batch once for all streams that send it.
func frames(b *thread.Batch) []frame {
	return b.Encode(sse{}, func() any { return join(len(b.Events), func(i int) frame { return frame{event: b.Events[i]} }) }).([]frame)
}

// join makes frames of n others: neighbouring deltas become one, the rest stays.
func join(n int, at func(int) frame) []frame {
	out := make([]frame, 0, n)
	for i := 0; i < n; {
		f, text := at(i), []byte(nil)
		end := f.event
		for i++; i < n; i++ {
			next := at(i).event
			if !thread.Continues(&end, &next) {
				break
			}
			if text == nil {
				text = []byte(f.event.Delta)
			}
			text = append(text, next.Delta...)
			end = next
		}
		if text != nil {
			f.event.Delta, f.data = string(text), nil
		}
		if f.data == nil {
			f.data = encode(f.event)
		}
		out = append(out, f)
	}
	return out
}

func encode(e event.Event) []byte {
	b, err := json.Marshal(view.OfEvent(e))
	if err != nil {
		panic("httpapi: encode event: " + err.Error())
	}
	return append(append([]byte("data: "), b...), "\n\n"...)
}
