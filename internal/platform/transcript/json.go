package transcript

import (
	"encoding/json"
	"time"

	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/view"
)

// Version is the form of the JSON document: fields may be added within one.
const Version = "thole.transcript/1"

// document writes {format, exported_at, session, todos, runs: [{run, items, questions}]}.
type document struct {
	*output
	questions []view.Question
	turns     int
	items     int
}

func (d *document) value(v any) {
	b, err := json.Marshal(v)
	if d.err == nil {
		d.err = err
	}
	d.put(string(b))
}

func (d *document) begin(th fold.Thread, todos []view.Todo, now time.Time) {
	d.put(`{"format":"`, Version, `","exported_at":`)
	d.value(now.UTC())
	d.put(`,"session":`)
	d.value(view.OfThread(th))
	d.put(`,"todos":`)
	d.value(append([]view.Todo{}, todos...))
	d.put(`,"runs":[`)
}

func (d *document) turn(t fold.Turn) {
	if d.turns++; d.turns > 1 {
		d.put(",")
	}
	d.put("\n", `{"run":`)
	d.value(view.OfTurn(t))
	d.put(`,"items":[`)
	d.items, d.questions = 0, nil
}

func (d *document) question(q view.Question) { d.questions = append(d.questions, q) }

func (d *document) item(it view.Item) {
	if d.items++; d.items > 1 {
		d.put(",")
	}
	d.put("\n")
	d.value(it)
}

func (d *document) turnEnd(fold.Turn) {
	d.put(`],"questions":`)
	d.value(append([]view.Question{}, d.questions...))
	d.put("}")
}

func (d *document) end() { d.put("]}\n") }
