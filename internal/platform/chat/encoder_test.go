package chat_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/chat"
	"pgregory.net/rapid"
)

var turn = fold.Turn{ID: "turn", Thread: "thread", Seq: 1, Settings: event.Settings{Provider: "test"}}

// client holds chunks against the rules that the official client enforces by
// failing the whole stream.
type client struct {
	open  map[string]bool // text and reasoning, by family and id
	tools map[string]bool // tool calls, false after a reset
	asks  map[string]bool
	step  map[string]bool // tool calls since the last step-start
	done  bool
	err   error
}

func newClient() *client {
	return &client{open: map[string]bool{}, tools: map[string]bool{}, asks: map[string]bool{}, step: map[string]bool{}}
}

func (c *client) fail(ch chat.Chunk, why string) {
	if c.err == nil {
		c.err = fmt.Errorf("%s: %s (%+v)", ch.Type, why, ch)
	}
}

func (c *client) take(ch chat.Chunk) {
	if c.done && ch.Type != "error" {
		c.fail(ch, "after finish")
	}
	family, verb, _ := strings.Cut(ch.Type, "-")
	switch {
	case ch.Type == "start-step":
		c.step = map[string]bool{}
	case ch.Type == "reset-step":
		c.open = map[string]bool{}
		for id := range c.step {
			delete(c.tools, id)
		}
		c.asks, c.step = map[string]bool{}, map[string]bool{}
	case ch.Type == "finish":
		c.done = true
		if len(c.open) > 0 {
			c.fail(ch, "parts are still open")
		}
	case family == "text" || family == "reasoning":
		key := family + ch.ID
		if c.open[key] == (verb == "start") {
			c.fail(ch, "out of order")
		}
		if verb == "delta" && ch.Delta == "" {
			c.fail(ch, "no delta")
		}
		if c.open[key] = true; verb == "end" {
			delete(c.open, key)
		}
	case family == "tool":
		c.tool(ch)
	case family == "data":
		if !json.Valid(ch.Data) {
			c.fail(ch, "no data")
		}
	}
}

func (c *client) tool(ch chat.Chunk) {
	switch ch.Type {
	case "tool-input-start":
		if c.tools[ch.ToolCallID] || ch.ToolName == "" {
			c.fail(ch, "started twice, or without a name")
		}
		c.tools[ch.ToolCallID], c.step[ch.ToolCallID] = true, true
	case "tool-approval-response":
		if !c.asks[ch.ApprovalID] || ch.Approved == nil {
			c.fail(ch, "nothing was asked")
		}
	default:
		if !c.tools[ch.ToolCallID] {
			c.fail(ch, "no such call")
		}
		if ch.Type == "tool-input-available" && (!json.Valid(ch.Input) || !c.step[ch.ToolCallID]) {
			c.fail(ch, "no input, or it would make a second part")
		}
		if ch.Type == "tool-output-available" && !json.Valid(ch.Output) || ch.Type == "tool-output-error" && ch.ErrorText == "" {
			c.fail(ch, "nothing came out")
		}
		if ch.Type == "tool-approval-request" {
			c.asks[ch.ApprovalID] = true
		}
	}
}

// script draws a turn's events as providers report them.
func script(t *rapid.T) []event.Event {
	var all []event.Event
	seq := uint64(0)
	add := func(k event.Kind, d event.Data) {
		e := event.Event{Thread: "thread", Turn: "turn", Kind: k, Data: d, Time: time.Unix(1, 0)}
		if k != event.ItemDelta {
			seq++
			e.Seq, e.ID = seq, thole.EventID(fmt.Sprint("e", seq))
		}
		all = append(all, e)
	}
	add(event.TurnStarted, event.Data{})
	add(event.ItemCompleted, event.Data{Item: &event.Item{ID: "u", Kind: event.ItemUserMessage}})
	type live struct {
		item event.Item
		text string
		step int
	}
	steps := 0
	crossed := false // an item of an earlier step ended in this one
	var items []*live
	var asks []event.Ask
	n := 0
	complete := func(at int) {
		l := items[at]
		crossed = crossed || l.step < steps
		items = append(items[:at:at], items[at+1:]...)
		i := l.item
		states := []event.ItemState{event.StateCompleted, event.StateFailed}
		if l.text == "" { // what was declined did nothing
			states = append(states, event.StateDeclined)
		}
		i.State = rapid.SampledFrom(states).Draw(t, "state")
		switch {
		case i.Command != nil:
			i.Command = &event.Command{Line: "ls", Output: l.text}
		case i.Tool == nil && i.Kind != event.ItemFileChange:
			i.Text = l.text
		}
		add(event.ItemCompleted, event.Data{Item: &i})
	}
	for range rapid.IntRange(0, 40).Draw(t, "events") {
		switch rapid.SampledFrom([]string{"start", "delta", "delta", "complete", "ask", "answer", "todo", "step", "reset", "note", "usage", "steer"}).Draw(t, "event") {
		case "start":
			n++
			i := event.Item{ID: thole.ItemID(fmt.Sprint("i", n)), Kind: rapid.SampledFrom([]event.ItemKind{
				event.ItemMessage, event.ItemReasoning, event.ItemPlan, event.ItemCommand, event.ItemFileChange, event.ItemTool}).Draw(t, "kind")}
			switch i.Kind {
			case event.ItemCommand:
				i.Command = &event.Command{Line: "ls"}
			case event.ItemTool:
				i.Tool = &event.ToolCall{Name: "look"}
			}
			items = append(items, &live{item: i, step: steps})
			add(event.ItemStarted, event.Data{Item: &i})
		case "delta":
			if len(items) == 0 {
				continue
			}
			l := rapid.SampledFrom(items).Draw(t, "item")
			s := event.StreamText
			if l.item.Command != nil || l.item.Kind == event.ItemFileChange {
				s = event.StreamOutput
			} else if l.item.Tool != nil {
				s = event.StreamInput
			}
			piece := rapid.SampledFrom([]string{"a", "bc", "é", "日本"}).Draw(t, "piece")
			add(event.ItemDelta, event.Data{ItemID: l.item.ID, Stream: s, Delta: piece, Offset: int64(len(l.text))})
			l.text += piece
		case "complete":
			if len(items) > 0 {
				complete(rapid.IntRange(0, len(items)-1).Draw(t, "which"))
			}
		case "ask":
			n++
			a := event.Ask{ID: thole.AskID(fmt.Sprint("q", n)), Kind: rapid.SampledFrom([]event.AskKind{event.AskCommand, event.AskInput, event.AskPermissions, event.AskPlan}).Draw(t, "ask")}
			if len(items) > 0 && rapid.Bool().Draw(t, "about") {
				a.Item = rapid.SampledFrom(items).Draw(t, "item").item.ID
			}
			asks = append(asks, a)
			add(event.AskRequested, event.Data{Ask: &a})
		case "answer":
			if len(asks) == 0 {
				continue
			}
			a := asks[0]
			asks = asks[1:]
			d := event.Data{AskID: a.ID, AskState: event.AskAnswered, Answer: &event.Answer{Decision: rapid.SampledFrom([]event.Decision{event.DecisionAllow, event.DecisionDeny}).Draw(t, "verdict")}}
			if rapid.Bool().Draw(t, "canceled") {
				d = event.Data{AskID: a.ID, AskState: event.AskCanceled}
			}
			add(event.AskResolved, d)
		case "todo":
			add(event.TodoSnapshot, event.Data{Todos: []event.Todo{{ID: "1", Content: "x", State: event.TodoDoing}}})
		case "step":
			steps++
			crossed = false
			add(event.StepStarted, event.Data{})
		case "reset": // a provider repeats a call whose step holds all that was open in it
			if crossed || len(items) > 0 && items[0].step < steps {
				continue
			}
			add(event.StepReset, event.Data{})
			items = nil
		case "note":
			add(event.NoteReported, event.Data{Text: "n"})
			add(event.LimitsUpdated, event.Data{Limits: []event.Limit{{Name: "primary", Used: rapid.IntRange(0, 100).Draw(t, "used")}}})
		case "usage":
			add(event.UsageUpdated, event.Data{Usage: &thole.Usage{Input: 1}})
		case "steer":
			n++
			add(event.ItemCompleted, event.Data{Item: &event.Item{ID: thole.ItemID(fmt.Sprint("s", n)), Kind: event.ItemUserMessage, Content: thole.Text("more")}})
		}
	}
	for len(items) > 0 { // the machine closes what is open before it ends a turn
		complete(0)
	}
	add(event.TurnEnded, event.Data{Outcome: rapid.SampledFrom([]thole.Outcome{thole.OutcomeCompleted, thole.OutcomeFailed, thole.OutcomeInterrupted}).Draw(t, "outcome")})
	return all
}

func encode(e *chat.Encoder, events []event.Event, each bool) []chat.Chunk {
	var out []chat.Chunk
	for _, ev := range events {
		e.Event(ev)
		if each {
			out = append(out, e.Take()...)
		}
	}
	return append(out, e.Take()...)
}

func message(chunks []chat.Chunk) string {
	m := chat.NewMessage()
	m.Fold(chunks)
	b, _ := json.Marshal(m)
	return string(b)
}

// TestStreamIsLegal: whatever a turn does, the client can read it, and however
// its events are cut into writes it reads the same message.
func TestStreamIsLegal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := script(t)
		each := encode(chat.NewEncoder(turn), events, true)
		c := newClient()
		for _, ch := range each {
			c.take(ch)
		}
		if c.err != nil || !c.done {
			t.Fatalf("%v (finished: %v)", c.err, c.done)
		}
		if a, b := message(each), message(encode(chat.NewEncoder(turn), events, false)); a != b {
			t.Fatalf("written at once it is another message:\n%s\n%s", a, b)
		}
	})
}

// TestJoinAnywhere: a reader that joins late gets the log without its deltas and
// then the text so far again, and ends with the same message.
func TestJoinAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := script(t)
		at := rapid.IntRange(0, len(events)).Draw(t, "join")
		type key struct {
			item   thole.ItemID
			stream event.Stream
		}
		soFar, order := map[key]string{}, []key{}
		var replay []event.Event
		for _, e := range events[:at] {
			if e.Kind != event.ItemDelta {
				replay = append(replay, e)
				continue
			}
			k := key{e.Data.ItemID, e.Data.Stream}
			if _, have := soFar[k]; !have {
				order = append(order, k)
			}
			soFar[k] += e.Data.Delta
		}
		for _, k := range order {
			replay = append(replay, event.Event{Turn: "turn", Kind: event.ItemDelta, Data: event.Data{ItemID: k.item, Stream: k.stream, Delta: soFar[k]}})
		}
		late := encode(chat.NewEncoder(turn), append(replay, events[at:]...), true)
		c := newClient()
		for _, ch := range late {
			c.take(ch)
		}
		if c.err != nil {
			t.Fatal(c.err)
		}
		want, got := texts(encode(chat.NewEncoder(turn), events, true)), texts(late)
		if want != got {
			t.Fatalf("joined at %d: %s, want %s", at, got, want)
		}
	})
}

// texts is every text part's text, whatever their order: items in flight at the
// join appear in the order of their text.
func texts(chunks []chat.Chunk) string {
	m := chat.NewMessage()
	m.Fold(chunks)
	all := map[string]int{}
	for _, p := range m.Parts {
		if p["type"] == "text" || p["type"] == "reasoning" {
			all[p["text"].(string)]++
		}
	}
	return fmt.Sprint(all)
}

func TestThreadID(t *testing.T) {
	if id := chat.ThreadID("u", "01900000-0000-7000-8000-000000000001"); id != "01900000-0000-7000-8000-000000000001" {
		t.Errorf("a UUID became %s", id)
	}
	a, b := chat.ThreadID("u", "my chat"), chat.ThreadID("v", "my chat")
	if a == b || a != chat.ThreadID("u", "my chat") || !thole.ValidUUID(string(a)) {
		t.Errorf("named chats: %s %s", a, b)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"id":"a","messages":[{"id":"m","role":"user","metadata":{"seq":"x"},"parts":[{"type":"text","text":"hi"}]}]}`))
	f.Add([]byte(`{"chatId":"a","messages":[{"role":"assistant","metadata":{"seq":3,"sent":{"a/text":2}},"parts":[{"type":"tool-x","state":"approval-responded","approval":{"id":"q","approved":true}}]}],"providerOptions":{"a":1}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := chat.Decode(body)
		if err != nil {
			if thole.CodeOf(err) != thole.CodeInvalid {
				t.Fatalf("a bad request is %v", err)
			}
			return
		}
		if !thole.ValidUUID(string(chat.ThreadID("u", r.ID))) {
			t.Fatal("a chat without a thread id")
		}
		_, _ = r.Settings()
		last := r.Last()
		if in, err := last.Input(); err == nil && len(in) == 0 {
			t.Fatal("an empty input was taken")
		}
		_, _ = last.Verdicts(), last.At()
	})
}

// An approval is offered for what a yes or a no settles, as threads take it: a tool
// of the client's own needs a result, which an approval does not carry.
func TestApprovalsAreWhatThreadsTakeAsOne(t *testing.T) {
	for _, kind := range []event.AskKind{event.AskCommand, event.AskFileChange, event.AskPermissions, event.AskInput, event.AskPlan, event.AskElicitation, event.AskTool} {
		e := chat.NewEncoder(turn)
		e.Event(event.Event{Thread: "thread", Turn: "turn", Kind: event.TurnStarted, Seq: 1, ID: "e1"})
		e.Event(event.Event{Thread: "thread", Turn: "turn", Kind: event.AskRequested, Seq: 2, ID: "e2", Data: event.Data{AskID: "q", Ask: &event.Ask{ID: "q", Kind: kind}}})
		offered := false
		for _, c := range e.Take() {
			offered = offered || c.Type == "tool-approval-request"
		}
		if offered != kind.Approval() {
			t.Errorf("%s: approval offered: %v", kind, offered)
		}
	}
}
