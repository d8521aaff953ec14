package acp

import (
	"strings"

	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// turn is what the editor was shown of a turn. It is kept until the next one begins.
type turn struct {
	items map[string]*shownItem
	// soFar are items in flight as a snapshot had them: their text is sent before what
	// comes next of it.
	soFar map[string]*app.Item
	// said: the turn has a message of the user's. One without is a command turn.
	said bool
	over bool
}

// shownItem is what the editor was shown of an item.
type shownItem struct {
	tool    bool // announced as a tool call
	waits   bool // announced for an ask alone: the agent has not shown it as one
	done    bool
	text    int // bytes of it that were sent, of a message or a command's output
	summary int
	output  strings.Builder // of a command, for editors that show no terminals
	printed int             // bytes of output that were sent
}

// maxOutput bounds the output of a running command that is kept to be sent again as it
// grows. The whole of it comes with its end.
const maxOutput = 256 << 10

func (s *session) turn(id string) *turn {
	t := s.turns[id]
	if t == nil {
		for old, was := range s.turns {
			if was.over {
				delete(s.turns, old)
			}
		}
		s.last = id
		t = &turn{items: map[string]*shownItem{}, soFar: map[string]*app.Item{}}
		s.turns[id] = t
	}
	return t
}

func (t *turn) item(id string) *shownItem {
	i := t.items[id]
	if i == nil {
		i = &shownItem{}
		t.items[id] = i
	}
	return i
}

// item shows an item as it is now: what of it the editor does not have yet.
func (s *session) item(turnID string, it *app.Item, done bool) {
	t := s.turn(turnID)
	have := t.item(it.ID)
	if have.done {
		return
	}
	have.done = done
	if done {
		delete(t.soFar, it.ID)
	}
	switch it.Type {
	case app.ItemUserMessage:
		have.done = true
		t.said = true
		s.userSaid(turnID, it)
	case app.ItemReasoning:
		if done {
			s.rest(it, "agent_thought_chunk", strings.Join(it.Summary, ""), &have.summary)
			s.rest(it, "agent_thought_chunk", thoughts(it), &have.text)
		}
	case app.ItemAgentMessage, app.ItemPlan:
		if done {
			s.rest(it, messageKind(it), str(it.Text), &have.text)
		}
	case app.ItemCompaction:
		s.compaction(it, done)
	default:
		if isTool(it) {
			s.tool(have, it, done)
		}
	}
}

// messageKind: what a sub-agent says is part of how its caller came to its answer.
func messageKind(it *app.Item) string {
	if it.Thole != nil && it.Thole.Parent != "" {
		return "agent_thought_chunk"
	}
	return "agent_message_chunk"
}

// rest sends what of a text was not sent yet.
func (s *session) rest(it *app.Item, kind, text string, sent *int) {
	if len(text) > *sent {
		s.update(chunk{Update: kind, Content: textBlock(text[*sent:]), MessageID: it.ID})
		*sent = len(text)
	}
}

// userSaid shows what the user said elsewhere; what was said in this session the editor
// shows itself.
func (s *session) userSaid(turnID string, it *app.Item) {
	if key := str(it.ClientID); s.own[key] {
		for _, p := range s.prompts {
			if p.key == key {
				p.turn = turnID
			}
		}
		return
	}
	for _, b := range blocks(it.UserContent()) {
		s.update(chunk{Update: "user_message_chunk", Content: b, MessageID: it.ID})
	}
}

// compaction shows that the agent shortened what it remembers.
func (s *session) compaction(it *app.Item, done bool) {
	if s.srv.can.compaction {
		word := "in_progress"
		if done {
			word = "completed"
		}
		s.update(object{"sessionUpdate": "compaction_update", "compactionId": it.ID, "status": word})
	} else if done {
		s.update(chunk{Update: "agent_message_chunk", Content: textBlock("Context compacted.\n\n"), MessageID: it.ID})
	}
}

// tool shows a tool call, or what changed of it.
func (s *session) tool(have *shownItem, it *app.Item, done bool) {
	c := describe(it, s.cwd)
	if done && c.Status == statusRunning { // cut off
		c.Status = statusFailed
	}
	c.Update = "tool_call_update"
	have.waits = false
	if !have.tool {
		have.tool = true
		c.Update = "tool_call"
	}
	if it.Type == app.ItemCommandExecution {
		s.output(have, it, &c, done)
	}
	if it.Status == app.ItemDeclined && len(c.Content) == 0 {
		c.Content = []toolContent{toolText("Declined.")}
	}
	s.update(c)
}

// output adds what a command printed: to a terminal of the editor's, or as text.
func (s *session) output(have *shownItem, it *app.Item, c *toolCall, done bool) {
	printed := str(it.AggregatedOutput)
	if s.srv.can.terminals {
		if c.Update == "tool_call" {
			c.Content = []toolContent{{Type: "terminal", TerminalID: it.ID}}
			c.Meta = object{"terminal_info": object{"terminal_id": it.ID, "cwd": str(it.Cwd)}}
		} else {
			c.Meta = object{}
		}
		if done {
			if have.text < len(printed) {
				c.Meta["terminal_output"] = object{"terminal_id": it.ID, "data": printed[have.text:]}
			}
			c.Meta["terminal_exit"] = object{"terminal_id": it.ID, "exit_code": it.ExitCode, "signal": nil}
		}
	} else if done && printed != "" {
		c.Content = []toolContent{toolText(fenced(printed))}
	}
	if done {
		c.RawOutput = object{"exit_code": it.ExitCode, "output": printed}
	}
}

// delta sends growing text.
func (s *session) delta(method, turnID, itemID, text string) {
	t := s.turn(turnID)
	have := t.item(itemID)
	if have.done {
		return
	}
	if it := t.soFar[itemID]; it != nil {
		delete(t.soFar, itemID)
		s.grow(have, it)
	}
	s.more(method, have, itemID, text)
}

// grow sends what a snapshot has of an item's text and the editor has not.
func (s *session) grow(have *shownItem, it *app.Item) {
	for _, part := range []struct {
		method, text string
		sent         int
	}{
		{"item/agentMessage/delta", str(it.Text), have.text},
		{"item/reasoning/summaryTextDelta", strings.Join(it.Summary, ""), have.summary},
		{"item/reasoning/textDelta", thoughts(it), have.text},
		{"item/commandExecution/outputDelta", str(it.AggregatedOutput), have.text},
	} {
		if len(part.text) > part.sent {
			s.more(part.method, have, it.ID, part.text[part.sent:])
		}
	}
}

func (s *session) more(method string, have *shownItem, itemID, text string) {
	kind := "agent_message_chunk"
	switch method {
	case "item/reasoning/summaryTextDelta":
		kind = "agent_thought_chunk"
		have.summary += len(text)
	case "item/commandExecution/outputDelta":
		s.printed(have, itemID, text)
		return
	case "item/reasoning/textDelta":
		kind = "agent_thought_chunk"
		have.text += len(text)
	default:
		have.text += len(text)
	}
	s.update(chunk{Update: kind, Content: textBlock(text), MessageID: itemID})
}

// printed sends a command's output while it runs. Text replaces the text before it, so
// it is sent when it has doubled: the sum of what is sent stays in proportion.
func (s *session) printed(have *shownItem, itemID, text string) {
	have.text += len(text)
	if !have.tool {
		return
	}
	if s.srv.can.terminals {
		s.update(toolCall{Update: "tool_call_update", ID: itemID, Meta: object{"terminal_output": object{"terminal_id": itemID, "data": text}}})
		return
	}
	have.output.WriteString(text[:min(len(text), max(0, maxOutput-have.output.Len()))])
	if n := have.output.Len(); n >= 2*have.printed && n > have.printed {
		have.printed = n
		s.update(toolCall{Update: "tool_call_update", ID: itemID, Content: []toolContent{toolText(fenced(have.output.String()))}})
	}
}

// thoughts is the text of a reasoning item.
func thoughts(it *app.Item) string {
	var list []string
	if it.Type != app.ItemReasoning || strictjson.Unmarshal(it.Content, &list) != nil {
		return ""
	}
	return strings.Join(list, "")
}

// cutOff ends tool calls that will not end themselves: their model call is made again, or
// the turn is over.
func (s *session) cutOff(t *turn) {
	for id, have := range t.items {
		if have.tool && !have.done {
			have.done = true
			s.update(toolCall{Update: "tool_call_update", ID: id, Status: statusFailed})
		}
	}
}
