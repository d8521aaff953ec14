package claude

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// hear handles one message of the CLI. Unknown kinds are ignored.
func (r *run) hear(m *message) {
	switch m.Type {
	case "stream_event":
		if m.Event == nil || m.Parent != "" {
			return
		}
		r.Listen(0)
		if m.Event.Type == "message_stop" {
			r.Stall.Off()
		}
		r.d.streamEvent(m.Event, len(m.Abandoned) > 0 && !r.Em.Interrupted() && !r.Stalled)
	case "assistant":
		r.d.assistant(m)
	case "user":
		r.Stall.Off()
		if m.IsReplay {
			r.taken(m.UUID)
		} else {
			r.d.user(m)
		}
	case "system":
		r.system(m)
	case "control_request":
		r.Stall.Off()
		if m.Request != nil {
			r.request(m)
		}
	case "control_response":
		if m.Response == nil {
			return
		}
		if fn := r.calls[m.Response.RequestID]; fn != nil {
			delete(r.calls, m.Response.RequestID)
			fn(m)
		}
	case "control_cancel_request":
		for id, p := range r.asks {
			if p.requestID == m.RequestID {
				r.resolve(id, nil)
			}
		}
	case "result":
		r.resulted(m)
	}
}

func (r *run) system(m *message) {
	switch m.Subtype {
	case "init":
		r.linger.Off()
		r.s.begun = true
		r.d.model = m.Model
		r.c.initiated(m.Skills)
		// Its ids are such. Whatever runs next to the CLI can write here too, and what
		// begins with a dash would be an option at the next start.
		if thole.ValidUUID(m.SessionID) && m.SessionID != r.s.NativeID() {
			r.s.SetNative(m.SessionID)
			r.Em.Session(m.SessionID)
		}
	case "status":
		if m.Status == "requesting" {
			r.Listen(0)
		}
		if m.PermissionMode != "" {
			r.s.stance.mode = m.PermissionMode
		}
	case "api_retry":
		delay := time.Duration(m.RetryDelayMS) * time.Millisecond
		r.Listen(delay)
		e := failure(class(m.ErrorStatus, m.Error, "", ""), m.ErrorStatus,
			fmt.Sprintf("the model call failed (%s), try %d of %d follows in %v", m.Error, m.Attempt, m.MaxRetries, delay.Round(100*time.Millisecond)))
		e.Retrying = true
		r.Em.Error(*e)
	case "permission_denied":
		r.d.decline(m.ToolUseID)
	case "task_started":
		r.s.tasks[m.TaskID] = true
		r.c.left.began(m.TaskID, r.Em.ItemID(m.ToolUseID))
	case "task_updated":
		if m.Patch != nil && slices.Contains(over, m.Patch.Status) {
			r.taskOver(m.TaskID)
		}
	case "task_notification":
		r.taskOver(m.TaskID)
	case "compact_boundary":
		r.Em.Complete(event.Item{ID: r.Em.ItemID(m.UUID), Kind: event.ItemCompaction})
	}
}

func (r *run) taskOver(id string) {
	delete(r.s.tasks, id)
	if r.result != nil && r.linger.On() && len(r.s.tasks) == 0 {
		r.linger.Set(followUp) // the CLI wakes up to inform the model
	}
}

// taken notes that the CLI took up a message.
func (r *run) taken(id string) {
	item, ours := r.waiting[id]
	delete(r.waiting, id)
	if ours && item != nil {
		r.Em.Steered(*item)
	}
}

// resulted decides whether a result is the turn's end. It is not when the CLI
// worked on something of its own before our message, when it holds a message it
// has not taken up, or when background work will wake it again soon.
func (r *run) resulted(m *message) {
	r.Stall.Off()
	r.result = m
	_, prompting := r.waiting[r.prompt]
	switch {
	case r.Em.Interrupted() || r.Stalled || m.Deferred != nil:
		r.conclude()
	case m.Origin != nil && prompting:
		return
	case len(r.waiting) > 1 || len(r.waiting) == 1 && !prompting:
		r.linger.Set(followUp)
	case len(r.s.tasks) > 0 && !m.IsError:
		r.linger.Set(r.s.opts.Background)
	default:
		r.conclude()
	}
}

// request handles what the CLI asks of its host.
func (r *run) request(m *message) {
	q := m.Request
	switch q.Subtype {
	case "hook_callback":
		r.hook(m)
	case "can_use_tool":
		r.permission(m)
	case "elicitation":
		r.put(&pending{ask: provider.Elicitation(r.Em.AskID(m.RequestID), q.Server, q.Message, q.URL, q.Schema), requestID: m.RequestID})
	case "request_user_dialog":
		_ = r.c.answer(m.RequestID, map[string]any{"behavior": "cancelled"})
	default:
		_ = r.c.refuse(m.RequestID, "not supported by this host: "+q.Subtype)
	}
}

// hook is asked before every call, whatever the CLI's own rules say.
func (r *run) hook(m *message) {
	var in hookInput
	_ = strictjson.Unmarshal(m.Request.Input, &in)
	st := r.s.stance
	switch {
	case in.ToolName == askTool:
		r.question(m, in)
	case st.plan() && !planAllows(configDir(r.s.Cfg), in.ToolName, in.ToolInput):
		r.d.decline(in.ToolUseID)
		_ = r.c.answer(m.RequestID, hookOutput("deny", "permissionDecisionReason", planDenial))
	case st.allow && in.ToolName != "ExitPlanMode":
		_ = r.c.answer(m.RequestID, hookOutput("allow", "", nil))
	default:
		_ = r.c.answer(m.RequestID, map[string]any{})
	}
}

// question holds a question in its hook until a human answers. A question of a
// former process comes again before the turn's own message is taken up.
func (r *run) question(m *message, in hookInput) {
	p := &pending{ask: question(r.Em.ItemID(in.ToolUseID), in.ToolUseID, in.ToolInput), requestID: m.RequestID, toolUse: in.ToolUseID, hook: true, tool: in.ToolName, input: in.ToolInput}
	r.d.startTool(in.ToolUseID, in.ToolName, "")
	r.d.toolInput(in.ToolUseID, in.ToolInput)
	if r.reply != nil && r.reply.Ask.ID == p.ask.ID {
		answer := r.reply.Answer
		r.reply = nil
		r.linger.Off()
		r.put(p)
		_ = r.settle(p, answer) // a CLI that is gone ends the turn
		return
	}
	if _, prompting := r.waiting[r.prompt]; prompting && r.reply == nil && r.d.step == nil && r.Reply == nil {
		r.d.decline(in.ToolUseID)
		_ = r.c.answer(m.RequestID, hookOutput("deny", "permissionDecisionReason", "The user did not answer and wrote a new message instead."))
		return
	}
	r.put(p)
}

func (r *run) permission(m *message) {
	q := m.Request
	st := r.s.stance
	switch {
	case q.ToolName == "ExitPlanMode" && st.allow:
		_ = r.c.answer(m.RequestID, map[string]any{"behavior": "allow", "updatedInput": q.Input,
			"updatedPermissions": []map[string]string{{"type": "setMode", "mode": st.mode, "destination": "session"}}})
	case q.ToolName == askTool:
		r.put(&pending{ask: question(r.Em.ItemID(q.ToolUseID), q.ToolUseID, q.Input), requestID: m.RequestID, toolUse: q.ToolUseID, tool: q.ToolName, input: q.Input})
	case st.plan() && !planAllows(configDir(r.s.Cfg), q.ToolName, q.Input):
		r.d.decline(q.ToolUseID)
		_ = r.c.answer(m.RequestID, map[string]any{"behavior": "deny", "message": planDenial})
	case st.allow:
		_ = r.c.answer(m.RequestID, map[string]any{"behavior": "allow", "updatedInput": q.Input})
	default:
		p := &pending{ask: approval(r.Em.ItemID(q.ToolUseID), r.s.Cfg.Dir, q), requestID: m.RequestID, toolUse: q.ToolUseID, tool: q.ToolName, input: q.Input}
		if answer, ok := r.Settled(p.ask); ok {
			_ = r.c.answer(m.RequestID, p.verdictOn(answer))
			return
		}
		r.put(p)
	}
}

// put shows an ask.
func (r *run) put(p *pending) {
	if p.ask.Kind == event.AskPlan {
		if t := r.d.tools[p.toolUse]; t != nil && t.item.Text != p.ask.Title {
			t.item.Text = p.ask.Title
			r.Em.Update(t.snapshot())
		}
	}
	r.asks[p.ask.ID] = p
	r.Em.Ask(p.ask)
}

// Answer settles an ask by a human's word.
func (r *run) Answer(_ context.Context, id thole.AskID, a event.Answer) error {
	p := r.asks[id]
	if p == nil {
		return provider.ErrSettled
	}
	return r.settle(p, a)
}

// settle sends an answer and emits it.
func (r *run) settle(p *pending, a event.Answer) error {
	var body map[string]any
	switch {
	case p.ask.Kind == event.AskElicitation:
		body = provider.Elicited(a)
	case p.hook:
		body = p.hookVerdict(a)
	case p.tool == askTool && a.Decision != event.DecisionDeny && a.Decision != event.DecisionCancel:
		body = map[string]any{"behavior": "allow", "updatedInput": answered(p.input, a)}
	default:
		body = p.verdictOn(a)
	}
	if err := r.c.answer(p.requestID, body); err != nil {
		return err
	}
	if a.Decision == event.DecisionDeny || a.Decision == event.DecisionCancel {
		r.d.decline(p.toolUse)
	}
	r.resolve(p.ask.ID, &a)
	switch {
	case a.Decision == event.DecisionCancel:
		r.Em.Interrupt()
		if p.hook || p.ask.Kind == event.AskElicitation { // else the answer itself interrupts
			r.Cancel()
		}
	case p.ask.Kind == event.AskPlan && a.Decision != event.DecisionDeny:
		r.s.stance.mode = afterPlan(a)
	}
	return nil
}

func (r *run) resolve(id thole.AskID, a *event.Answer) {
	delete(r.asks, id)
	r.Em.Resolve(id, a)
}

// Defer parks an ask. Of questions the CLI itself keeps a record, and the turn ends
// with its result.
func (r *run) Defer(ctx context.Context, id thole.AskID) error {
	p := r.asks[id]
	switch {
	case !r.s.keeps(ctx):
		return provider.ErrUnsupported
	case p == nil:
		return provider.ErrSettled
	case !p.hook:
		return r.Turn.Defer(ctx, id)
	}
	if err := r.c.answer(p.requestID, hookOutput("defer", "", nil)); err != nil {
		return err
	}
	r.deferred = id
	return nil
}

// Steer adds input to the turn.
func (r *run) Steer(ctx context.Context, input []thole.Input, clientID string) error {
	content, err := r.s.content(input)
	if err != nil {
		return err
	}
	return r.Lock.Do(ctx, func() error {
		id := uuid.NewString()
		if err := r.say(id, content); err != nil {
			return err
		}
		r.waiting[id] = r.Message(id, input, clientID)
		return nil
	})
}
