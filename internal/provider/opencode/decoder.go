package opencode

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// decoder turns messages and parts into events of one turn. Everything may be
// sent to it more than once: what it has emitted it does not emit again. It holds
// no connection. Used from one goroutine at a time.
type decoder struct {
	em      *provider.Emitter
	dir     string
	session string
	prompt  string // id of the turn's first message; ids rise, so what is below is older

	messages map[string]*spoken // of this turn and of its sub-agents
	order    []*spoken          // the main agent's, oldest first
	children map[string]string  // sub-agent's session to the item key of the call that started it
	parts    map[string]*piece  // text and reasoning by part id
	calls    map[string]*call   // by call key
	ended    map[string]bool    // step-finish parts that were counted
	changes  map[string][]event.FileChange
	declined map[string]bool
	list     []event.Todo // as last emitted
	usage    thole.Usage
	cost     float64
	model    string
	windows  map[string]int64 // context windows by model, as far as the server knows them

	client     map[string]provider.ClientTool // by the names that the server calls them by
	structured bool                           // the turn's answer comes by a call of outputTool
}

// spoken is a message of the turn.
type spoken struct {
	info info
	hide bool // a compaction's summary
}

func (s *spoken) over() bool { return s.info.Time.Completed > 0 || s.info.Error != nil }

// piece is a text or reasoning part.
type piece struct {
	item event.Item
	sent int
	done bool
}

func newDecoder(em *provider.Emitter, dir, session, prompt string) *decoder {
	return &decoder{
		em: em, dir: dir, session: session, prompt: prompt,
		messages: map[string]*spoken{}, children: map[string]string{}, parts: map[string]*piece{}, calls: map[string]*call{},
		ended: map[string]bool{}, changes: map[string][]event.FileChange{}, declined: map[string]bool{},
	}
}

// ours reports whether a session is the thread's or a sub-agent's of this turn.
func (d *decoder) ours(session string) bool {
	_, child := d.children[session]
	return child || session == d.session
}

// born notes a sub-agent's session. The call that started it is known later.
func (d *decoder) born(i info) {
	if i.ParentID != "" && d.ours(i.ParentID) {
		if _, known := d.children[i.ID]; !known {
			d.children[i.ID] = ""
		}
	}
}

// message takes in a message's state.
func (d *decoder) message(i info) *spoken {
	if !d.ours(i.SessionID) || i.SessionID == d.session && i.ID < d.prompt {
		return nil
	}
	m := d.messages[i.ID]
	if m == nil {
		m = &spoken{}
		d.messages[i.ID] = m
		if i.Role == "assistant" && i.SessionID == d.session {
			d.order = append(d.order, m)
		}
	}
	was := m.over()
	m.info = i
	if b, ok := i.Summary.(bool); ok && b {
		m.hide = true
		if m.over() && !was {
			d.em.Complete(event.Item{ID: d.em.ItemID(i.ID), Kind: event.ItemCompaction})
		}
	} else if i.Role == "assistant" && i.SessionID == d.session && i.ModelID != "" {
		d.model = i.ProviderID + "/" + i.ModelID
	}
	return m
}

// last is the main agent's newest message.
func (d *decoder) last() *spoken {
	if len(d.order) == 0 {
		return nil
	}
	return d.order[len(d.order)-1]
}

// settled reports whether every message of the main agent is over.
func (d *decoder) settled() bool {
	for _, m := range d.order {
		if !m.over() {
			return false
		}
	}
	return len(d.order) > 0
}

// part takes in a part's state. Parts of messages that are not the agent's, or
// older than the turn, are skipped.
func (d *decoder) part(p *part) {
	m := d.messages[p.MessageID]
	if m == nil || m.info.Role != "assistant" {
		return
	}
	main := p.SessionID == d.session && !m.hide
	switch p.Type {
	case "text", "reasoning":
		if main {
			d.prose(p)
		}
	case "tool":
		if p.State != nil {
			d.tool(p)
		}
	case "step-start":
		if main && !d.ended[p.ID] {
			d.ended[p.ID] = true
			d.em.StepStarted()
		}
	case "step-finish":
		if p.Tokens == nil || d.ended[p.ID] {
			return
		}
		d.ended[p.ID] = true
		d.count(p)
		if main {
			d.usage.Last = &thole.Tokens{Input: p.Tokens.Input, Output: p.Tokens.Output, Reasoning: p.Tokens.Reasoning, CacheRead: p.Tokens.Cache.Read, CacheWrite: p.Tokens.Cache.Write}
			d.em.StepEnded()
		}
		d.em.Usage(d.total())
	}
}

func (d *decoder) prose(p *part) {
	t := d.parts[p.ID]
	if t == nil {
		kind := event.ItemMessage
		if p.Type == "reasoning" {
			kind = event.ItemReasoning
		}
		if p.Text == "" && p.Time.End > 0 {
			return // nothing was said
		}
		t = &piece{item: event.Item{ID: d.em.ItemID(p.ID), Kind: kind}}
		d.parts[p.ID] = t
		d.em.Start(t.item)
	}
	if t.done {
		return
	}
	// The final text may have lost the white space at its end; what streamed counts.
	if len(p.Text) > t.sent {
		d.grow(t, p.Text[t.sent:])
	}
	if p.Time.End > 0 {
		t.done = true
		d.em.Complete(t.item)
	}
}

// delta extends a part that was begun.
func (d *decoder) delta(p *props) {
	if t := d.parts[p.PartID]; t != nil && p.Field == "text" && !t.done {
		d.grow(t, p.Delta)
	}
}

func (d *decoder) grow(t *piece, s string) {
	t.sent += len(s)
	d.em.Delta(t.item.ID, event.StreamText, s)
}

// retry drops what the failed call has shown: the server asks the model again
// and starts new parts.
func (d *decoder) retry() {
	for _, t := range d.parts {
		t.done = true
	}
	d.em.StepReset()
}

func (d *decoder) count(p *part) {
	d.usage.Input += p.Tokens.Input
	d.usage.Output += p.Tokens.Output
	d.usage.Reasoning += p.Tokens.Reasoning
	d.usage.CacheRead += p.Tokens.Cache.Read
	d.usage.CacheWrite += p.Tokens.Cache.Write
	d.cost += p.Cost
}

// total is the turn's usage. The server knows a cost only for models with a
// price; zero means that it does not know.
func (d *decoder) total() thole.Usage {
	u := d.usage
	u.Model, u.ContextWindow = d.model, d.windows[d.model]
	if d.cost > 0 {
		micros := int64(math.Round(d.cost * 1e6))
		u.CostMicros = &micros
	}
	return u
}

// todos takes in the whole list.
func (d *decoder) todos(list []nativeTodo) {
	out := make([]event.Todo, len(list))
	for i, t := range list {
		state := event.TodoPending
		switch t.Status {
		case "in_progress":
			state = event.TodoDoing
		case "completed":
			state = event.TodoDone
		case "cancelled":
			state = event.TodoCanceled
		}
		out[i] = event.Todo{ID: provider.StableID[thole.TodoID](name, "todo", d.session, strconv.Itoa(i)), Content: t.Content, State: state, Order: i}
	}
	if !slices.Equal(out, d.list) {
		d.list = out
		d.em.Todos(out)
	}
}

// decodeProps reads an event's properties; a field of an unexpected type is
// skipped.
func decodeProps(raw json.RawMessage) *props {
	p := &props{}
	_ = strictjson.Unmarshal(raw, p)
	if p.SessionID == "" {
		p.SessionID = p.Info.SessionID
	}
	return p
}

// callKey names a call: models repeat call ids from message to message.
func callKey(messageID, callID string) string { return strings.Join([]string{messageID, callID}, "/") }
