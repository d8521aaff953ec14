package claude

import (
	"strconv"
	"strings"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

// decoder turns the CLI's conversation into events of one turn. It holds no
// process and answers nothing; the run does. Used from one goroutine at a
// time.
type decoder struct {
	em  *provider.Emitter
	dir string

	model     string
	lastError string // class word of the last synthetic message
	step      *step
	tools     map[string]*toolItem // open calls by tool_use id
	todos     *todoList
	usage     tally

	client     map[string]provider.ClientTool // by the names that the CLI calls them by
	structured bool                           // the turn's answer comes by a call of outputTool
}

// outputTool is how the model gives an answer of the form that was asked for. The result
// repeats it, so the call is not shown.
const outputTool = "StructuredOutput"

func (d *decoder) hidden(tool string) bool { return d.structured && tool == outputTool }

// step is one model call of the main agent.
type step struct {
	id     string // API message id
	blocks map[int]*streamed
	order  []int
	whole  int // blocks that came whole, for ids when nothing was streamed
}

// streamed is one content block of the open step.
type streamed struct {
	kind   string // text, thinking, tool_use
	item   event.Item
	tool   string          // tool_use id
	input  strings.Builder // JSON text of a tool's input
	done   bool            // the item is completed, or its tool call took over
	merged bool            // the whole-block message that repeats it was seen
}

func newDecoder(em *provider.Emitter, dir string, todos *todoList) *decoder {
	return &decoder{em: em, dir: dir, todos: todos, tools: map[string]*toolItem{}}
}

// streamEvent handles a raw model event of the main agent. abandoned says that
// the CLI closes a cut stream itself and repeats the call.
func (d *decoder) streamEvent(e *streamEvent, abandoned bool) {
	switch e.Type {
	case "message_start":
		if e.Message == nil {
			return
		}
		if d.step != nil && d.step.id == "" {
			d.step.id = e.Message.ID // the repeat of a step that was reset
		} else {
			if d.step != nil {
				d.endStep()
			}
			d.beginStep(e.Message.ID)
		}
		d.usage.begin(e.Message.Usage)
	case "content_block_start":
		if d.step != nil && e.ContentBlock != nil {
			d.startBlock(e.Index, e.ContentBlock)
		}
	case "content_block_delta":
		if e.Delta != nil {
			d.delta(e.Index, e.Delta.Type, e.Delta.Text+e.Delta.Thinking+e.Delta.JSON)
		}
	case "content_block_stop":
		if d.step == nil {
			return
		}
		if b := d.step.blocks[e.Index]; b != nil {
			d.finishBlock(b)
		}
	case "message_delta":
		d.usage.progress(e.Usage)
	case "message_stop":
		if d.step != nil && abandoned {
			d.resetStep("")
		} else if d.step != nil {
			d.endStep()
			d.em.Usage(d.usage.total(d.model))
		}
	}
}

func (d *decoder) beginStep(id string) {
	d.step = &step{id: id, blocks: map[int]*streamed{}}
	d.em.StepStarted()
}

func (d *decoder) endStep() {
	for _, i := range d.step.order {
		d.finishBlock(d.step.blocks[i])
	}
	d.em.StepEnded()
	d.step = nil
	d.usage.end()
}

// resetStep drops the open step because the CLI repeats its call. What the call
// used before it was cut counts, for us as for the CLI.
func (d *decoder) resetStep(next string) {
	for _, b := range d.step.blocks {
		delete(d.tools, b.tool)
	}
	d.em.StepReset()
	d.usage.end()
	d.step = &step{id: next, blocks: map[int]*streamed{}}
}

func (d *decoder) startBlock(index int, c *block) {
	if d.hidden(c.Name) {
		return
	}
	b := &streamed{kind: c.Type}
	switch c.Type {
	case "text":
		b.item = d.prose(event.ItemMessage, index)
	case "thinking":
		b.item = d.prose(event.ItemReasoning, index)
	case "tool_use":
		b.tool = c.ID
		b.item = d.startTool(c.ID, c.Name, "").item
	default:
		return
	}
	if c.Type != "tool_use" {
		d.em.Start(b.item)
	}
	d.step.blocks[index] = b
	d.step.order = append(d.step.order, index)
}

// prose is a fresh message or reasoning item of the open step.
func (d *decoder) prose(kind event.ItemKind, index int) event.Item {
	return event.Item{ID: d.em.ItemID(d.step.id + "/" + strconv.Itoa(index)), Kind: kind}
}

func (d *decoder) delta(index int, kind, text string) {
	if d.step == nil {
		return
	}
	b := d.step.blocks[index]
	if b == nil || b.done {
		return
	}
	stream := event.StreamText
	switch kind {
	case textDelta, thinkingDelta:
	case inputDelta:
		b.input.WriteString(text)
		stream = event.StreamInput
	default:
		return
	}
	d.em.Delta(b.item.ID, stream, text)
}

// finishBlock ends a block. What was streamed is its text.
func (d *decoder) finishBlock(b *streamed) {
	if b.done {
		return
	}
	b.done = true
	if b.kind == "tool_use" {
		d.toolInput(b.tool, []byte(b.input.String()))
		return
	}
	d.em.Complete(b.item)
}

// assistant handles one finished content block, which the CLI repeats as a whole
// after it was streamed. Blocks that were not streamed are emitted here.
func (d *decoder) assistant(m *message) {
	msg := m.Message
	if msg == nil {
		return
	}
	if msg.Model == "<synthetic>" {
		if m.Error != "" {
			d.lastError = m.Error
		}
		return
	}
	if m.Parent != "" {
		d.subagent(m)
		return
	}
	if d.step != nil && d.step.id == "" {
		d.step.id = msg.ID
	}
	if d.step != nil && d.step.id != msg.ID {
		// The stream was cut and the CLI silently asked again without streaming.
		if len(d.step.blocks) > 0 && d.step.whole == 0 {
			d.resetStep(msg.ID)
		} else {
			d.endStep()
		}
	}
	blocks := msg.blocks()
	if d.step == nil {
		if d.repeated(blocks) {
			return
		}
		d.beginStep(msg.ID)
		d.usage.begin(msg.Usage)
	}
	for i := range blocks {
		d.wholeBlock(&blocks[i])
	}
}

// repeated reports whether the blocks are calls that are known already, emitted
// once more after their step ended.
func (d *decoder) repeated(blocks []block) bool {
	for _, b := range blocks {
		if b.Type != "tool_use" || d.tools[b.ID] == nil {
			return false
		}
	}
	return len(blocks) > 0
}

func (d *decoder) wholeBlock(c *block) {
	if d.hidden(c.Name) {
		return
	}
	for _, i := range d.step.order {
		b := d.step.blocks[i]
		if b.merged || b.kind != c.Type || b.tool != c.ID {
			continue
		}
		b.merged = true
		if c.Type == "tool_use" {
			b.done = true
			d.toolInput(c.ID, c.Input)
		} else {
			d.finishBlock(b)
		}
		return
	}
	d.step.whole++
	switch c.Type {
	case "tool_use":
		d.startTool(c.ID, c.Name, "")
		d.toolInput(c.ID, c.Input)
	case "text", "thinking":
		kind := event.ItemMessage
		if c.Type == "thinking" {
			kind = event.ItemReasoning
		}
		item := d.prose(kind, d.step.whole-1)
		item.Text = c.Text + c.Thinking
		d.em.Complete(item)
	}
}

// subagent emits what a sub-agent did; its calls hang under the caller's item.
func (d *decoder) subagent(m *message) {
	for i, c := range m.Message.blocks() {
		switch c.Type {
		case "tool_use":
			d.startTool(c.ID, c.Name, m.Parent)
			d.toolInput(c.ID, c.Input)
		case "text":
			d.em.Complete(event.Item{
				ID: d.em.ItemID(m.Message.ID + "/" + m.UUID + "/" + strconv.Itoa(i)), Kind: event.ItemMessage,
				Parent: d.em.ItemID(m.Parent), Text: c.Text,
			})
		}
	}
}

// user handles tool results.
func (d *decoder) user(m *message) {
	if m.Message == nil {
		return
	}
	structured := m.ToolResult
	if structured == nil {
		structured = m.ToolResultBare
	}
	for _, c := range m.Message.blocks() {
		if c.Type == "tool_result" {
			d.toolResult(c.ToolUseID, c.IsError, text(c.Content), structured)
		}
	}
}
