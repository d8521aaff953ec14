package chat

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// tail is how much of a running command's output a preliminary chunk shows: each
// repeats what it shows, so a long output must not be in all of them.
const tail = 8 << 10

// part is one item on the stream.
type part struct {
	item  event.Item
	step  int                    // the one it began in
	open  map[event.Stream]bool  // started on this stream, not ended
	sent  map[event.Stream]int64 // bytes the client has
	begun bool                   // tool-input-start went out
	ready bool                   // tool-input-available went out
	done  bool

	output []byte // the last bytes of what a tool printed so far
	total  int64
	dirty  bool
}

func (e *Encoder) part(item event.Item) *part {
	p := e.parts[item.ID]
	if p == nil {
		p = &part{step: e.steps, open: map[event.Stream]bool{}, sent: map[event.Stream]int64{}}
		e.parts[item.ID] = p
		e.order = append(e.order, item.ID)
	}
	p.item = item
	return p
}

func (e *Encoder) finish(p *part) {
	p.done, p.dirty, p.output = true, false, nil
	e.order = slices.DeleteFunc(e.order, func(id thole.ItemID) bool { return id == p.item.ID })
}

// item takes an item as it is now.
func (e *Encoder) item(item event.Item, completed bool) {
	if p := e.parts[item.ID]; p != nil && p.done {
		return
	}
	if item.Kind == event.ItemUserMessage {
		e.userMessage(item)
		return
	}
	e.visible()
	p := e.part(item)
	switch item.Kind {
	case event.ItemMessage, event.ItemPlan, event.ItemReasoning:
		e.prose(p, completed)
	case event.ItemCommand, event.ItemFileChange, event.ItemTool:
		e.tool(p, completed)
	default:
		switch {
		case !completed, item.Review == event.ReviewExited: // what was found is the agent's last message
		case item.Review == event.ReviewEntered:
			e.note(string(item.ID), string(item.Kind), "Review: "+item.Text)
		default:
			e.note(string(item.ID), string(item.Kind), item.Text)
		}
	}
	if completed {
		e.finish(p)
	}
}

// userMessage is the turn's own input, which is a message of its own, or a steer.
func (e *Encoder) userMessage(item event.Item) {
	if !e.steered {
		e.steered = true
		return
	}
	text := ""
	for _, in := range item.Content {
		text += in.Text
		if in.Type == thole.InputFile {
			text += "[" + in.Name + "]\n"
		}
	}
	e.visible()
	e.emit(Chunk{Type: "data-steer", ID: string(item.ID), Data: raw(struct {
		Text     string        `json:"text"`
		Content  []thole.Input `json:"content"`
		ClientID string        `json:"client_id,omitempty"`
	}{text, item.Content, item.ClientID})})
}

func (e *Encoder) note(id, kind, text string) {
	e.visible()
	e.emit(Chunk{Type: "data-note", ID: id, Data: raw(map[string]string{"kind": kind, "text": text})})
}

func (p *part) info() PartInfo {
	i := PartInfo{Parent: string(p.item.Parent)}
	if p.item.Kind == event.ItemPlan {
		i.Kind = "plan"
	}
	return i
}

// name is the chunk family and id of a text stream. Reasoning may come in two
// forms; each is a part of its own.
func (p *part) name(s event.Stream) (family, id string) {
	family, id = "text", string(p.item.ID)
	if p.item.Kind == event.ItemReasoning {
		family = "reasoning"
	}
	if s == event.StreamSummary {
		id += "/summary"
	}
	return family, id
}

// prose brings the client up to what the item itself says.
func (e *Encoder) prose(p *part, completed bool) {
	text, summary := p.item.Text, p.item.Summary
	if completed && text == "" && summary == "" && len(p.open) == 0 {
		return
	}
	if text != "" && p.item.Kind == event.ItemReasoning && summary != "" && p.sent[event.StreamText] == 0 && p.sent[event.StreamSummary] > 0 {
		text = "" // the short form was streamed: the long one would say it again
	}
	e.upTo(p, event.StreamText, text)
	if p.sent[event.StreamText] == 0 || p.sent[event.StreamSummary] > 0 {
		e.upTo(p, event.StreamSummary, summary)
	}
	if completed {
		for _, s := range []event.Stream{event.StreamText, event.StreamSummary} {
			e.endText(p, s)
		}
	}
}

func (e *Encoder) upTo(p *part, s event.Stream, text string) {
	if n := p.sent[s]; int64(len(text)) > n {
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		e.text(p, s, text[n:], int64(len(text)))
	}
}

func (e *Encoder) text(p *part, s event.Stream, text string, sent int64) {
	family, id := p.name(s)
	if !p.open[s] {
		p.open[s] = true
		e.emit(Chunk{Type: family + "-start", ID: id, ProviderMetadata: p.info().meta()})
	}
	e.emit(Chunk{Type: family + "-delta", ID: id, Delta: text})
	p.sent[s] = sent
}

func (e *Encoder) endText(p *part, s event.Stream) {
	if p.open[s] {
		delete(p.open, s)
		family, id := p.name(s)
		e.emit(Chunk{Type: family + "-end", ID: id})
	}
}

// delta takes a piece of text at its place.
func (e *Encoder) delta(id thole.ItemID, s event.Stream, text string, offset int64) {
	p := e.parts[id]
	if p == nil || p.done {
		return
	}
	if s == event.StreamOutput {
		p.print(text, offset)
		return
	}
	// A gap is not shown: the item says all when it completes.
	n := p.sent[s]
	end := offset + int64(len(text))
	if offset > n || end <= n {
		return
	}
	text = text[n-offset:]
	e.visible()
	if s == event.StreamInput {
		e.begin(p)
		if !p.ready {
			e.emit(Chunk{Type: "tool-input-delta", ToolCallID: string(id), InputTextDelta: text})
		}
		p.sent[s] = end
		return
	}
	e.text(p, s, text, end)
}

// print adds to the output so far, of which the end is kept.
func (p *part) print(text string, offset int64) {
	end := offset + int64(len(text))
	if end <= p.total {
		return
	}
	if offset < p.total {
		text = text[p.total-offset:]
	}
	p.output = append(p.output, text...)
	if len(p.output) > 2*tail {
		p.output = append([]byte(nil), p.output[len(p.output)-tail:]...)
	}
	p.total, p.dirty = end, true
}

// shown is the kept end of the output, cut at a character.
func (p *part) shown() string {
	b := p.output
	if len(b) > tail {
		b = b[len(b)-tail:]
	}
	for len(b) > 0 && int64(len(b)) < p.total && !utf8.RuneStart(b[0]) {
		b = b[1:]
	}
	return string(b)
}

// preliminary shows what a tool printed so far.
func (e *Encoder) preliminary(p *part) {
	if !p.dirty || p.done || !p.ready {
		return
	}
	p.dirty = false
	text := p.shown()
	var out json.RawMessage
	if p.item.Kind == event.ItemCommand {
		out = raw(commandOutput{Output: text, Dropped: p.total - int64(len(text))})
	} else {
		out = raw(text)
	}
	e.emit(Chunk{Type: "tool-output-available", ToolCallID: string(p.item.ID), Output: out, Preliminary: true, ProviderExecuted: true, Dynamic: dynamic(p.item)})
}
