package thread

import (
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// maxFlight bounds the kept text of one stream of one item in flight. Deltas
// beyond it still reach subscribers; a joiner sees the beginning, and everybody
// the provider's own text when the item completes. Of a command whose item has only
// the ends of its output, what was kept here stays readable (Service.Output).
const maxFlight = 1 << 20

type flightKey struct {
	item   thole.ItemID
	stream event.Stream
}

// flight is one stream's text so far: what is kept of total bytes, of which
// saved have been checkpointed.
type flight struct {
	turn  thole.TurnID
	text  []byte
	total int64
	saved int64
}

// flights is the text of a thread's items in flight. It is outside the log: the
// fold knows which items are open, this knows how far they got.
type flights map[flightKey]*flight

func (f *flight) add(text string) {
	if room := maxFlight - len(f.text); room > 0 && int64(len(f.text)) == f.total {
		f.text = append(f.text, fold.Clip(text, room)...)
	}
	f.total += int64(len(text))
}

// load lays checkpointed text under what is there already; a longer text wins.
func (f flights) load(drafts []Draft) {
	for _, d := range drafts {
		k := flightKey{d.Item, d.Stream}
		have := f[k]
		if have == nil {
			have = &flight{turn: d.Turn}
			f[k] = have
		}
		if rest, ok := after(have.total, d.Offset, d.Text); ok {
			have.add(rest)
			have.saved = max(have.saved, have.total)
		}
	}
}

// after returns what of a delta at offset is new after length bytes; false for
// a repeat, and for a delta after a gap, which would show text that never was.
func after(length, offset int64, text string) (string, bool) {
	if offset > length || offset+int64(len(text)) <= length {
		return "", false
	}
	return text[length-offset:], true
}

// flightPlan is flights plus the deltas of one commit, which take effect only
// if the commit does.
type flightPlan struct {
	base flights
	turn thole.TurnID
	adds []planned
	plus map[flightKey]int64
	gone []thole.ItemID
}

type planned struct {
	key  flightKey
	text string
}

// length is how much of a stream is known. own is the text the item itself
// came with.
func (p *flightPlan) length(k flightKey, own int) int64 {
	n := p.plus[k]
	if f := p.base[k]; f != nil {
		return f.total + n
	}
	return n + int64(own)
}

// take accepts a delta and returns its new part and where that begins.
func (p *flightPlan) take(k flightKey, own string, offset int64, text string) (string, int64, bool) {
	at := p.length(k, len(own))
	text, ok := after(at, offset, text)
	if !ok {
		return "", 0, false
	}
	if p.plus == nil {
		p.plus = map[flightKey]int64{}
	}
	if p.base[k] == nil && p.plus[k] == 0 && own != "" {
		p.adds = append(p.adds, planned{k, own})
		p.plus[k] += int64(len(own))
	}
	p.adds = append(p.adds, planned{k, text})
	p.plus[k] += int64(len(text))
	return text, at, true
}

// text is a stream's kept text with the plan's deltas.
func (p *flightPlan) text(k flightKey) (string, int64) {
	var f flight
	if have := p.base[k]; have != nil {
		f.text, f.total = have.text[:len(have.text):len(have.text)], have.total
	}
	for _, a := range p.adds {
		if a.key == k {
			f.add(a.text)
		}
	}
	return string(f.text), f.total - int64(len(f.text))
}

// fill returns the item with its text so far, where the item does not say more
// itself.
func (p *flightPlan) fill(item event.Item) event.Item {
	get := func(s event.Stream, own string) string {
		if text, _ := p.text(flightKey{item.ID, s}); len(text) > len(own) {
			return text
		}
		return own
	}
	item.Text = get(event.StreamText, item.Text)
	item.Summary = get(event.StreamSummary, item.Summary)
	if item.Command != nil && item.Command.OutputDropped == 0 { // else the provider cut it itself
		c := *item.Command
		if text, dropped := p.text(flightKey{item.ID, event.StreamOutput}); len(text) > len(c.Output) {
			c.Output, c.OutputDropped = text, dropped
		}
		item.Command = &c
	}
	if item.Tool != nil {
		t := *item.Tool
		if text, _ := p.text(flightKey{item.ID, event.StreamOutput}); text != "" && len(t.Output) == 0 {
			t.Output, _ = json.Marshal(text)
		}
		if text, _ := p.text(flightKey{item.ID, event.StreamInput}); len(t.Input) == 0 && json.Valid([]byte(text)) {
			t.Input = json.RawMessage(text)
		}
		item.Tool = &t
	}
	return item
}

// own is the text an item itself carries in a stream.
func own(item event.Item, s event.Stream) string {
	switch {
	case s == event.StreamText:
		return item.Text
	case s == event.StreamSummary:
		return item.Summary
	case s == event.StreamOutput && item.Command != nil:
		return item.Command.Output
	}
	return ""
}

// land makes the plan real and returns how many bytes wait for a checkpoint.
func (p *flightPlan) land() (unsaved int64) {
	for _, a := range p.adds {
		f := p.base[a.key]
		if f == nil {
			f = &flight{turn: p.turn}
			p.base[a.key] = f
		}
		f.add(a.text)
	}
	for _, id := range p.gone {
		for k := range p.base {
			if k.item == id {
				delete(p.base, k)
			}
		}
	}
	for _, f := range p.base {
		unsaved += int64(len(f.text)) - min(f.saved, int64(len(f.text)))
	}
	return unsaved
}
