package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/unguarded"
)

const instructions = "Tools of thole, which runs this thread: background jobs in this sandbox, questions to the user, threads of other agents, and the goal of this thread."

// object is a JSON schema of an object with no members but these.
func object(required []string, members map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": members, "required": required, "additionalProperties": false}
}

func text(description string) map[string]any {
	return map[string]any{"type": "string", "description": description}
}

// tool describes one tool. What only reads is annotated so, and CLIs ask for the others as
// they do for any tool.
func tool(name, description string, reads bool, schema map[string]any) map[string]any {
	return map[string]any{
		"name": name, "description": description, "inputSchema": schema,
		"annotations": map[string]any{"readOnlyHint": reads, "destructiveHint": !reads, "openWorldHint": false, "idempotentHint": reads},
	}
}

// list is what tools/list answers. What a profile forbids is refused when it is called: a
// profile may change between two turns of one process.
var list = []any{
	tool("job_run", "Run a shell command in the background, in this sandbox and on these files. Returns a job id at once. When the command has ended, its output arrives as a message that starts a new turn. For builds, tests and other long work.", false,
		object([]string{"command"}, map[string]any{
			"command":         text("what sh -c runs"),
			"summary":         text("one line about the work"),
			"timeout_seconds": map[string]any{"type": "integer", "minimum": 1, "maximum": int(maxTimeout / time.Second), "description": "end the command after this long"},
		})),
	tool("job_status", "Show a background job of this thread with its output so far as it is kept, or all newest jobs.", true,
		object([]string{}, map[string]any{"job_id": text("of job_run; without one the newest jobs are listed")})),
	tool("ask_user", "Ask the user one question and wait for the answer, however long that takes.", true,
		object([]string{"question"}, map[string]any{
			"question": text("what the user is asked"),
			"options":  map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "maxItems": maxOptions, "description": "answers to choose from; the user may also write another one"},
			"multiple": map[string]any{"type": "boolean", "description": "several options may be chosen"},
		})),
	tool("thread_start", "Start another agent on a task of its own, in a sandbox of its own. It has no more rights than you and uses your budget. Returns its thread id at once; it reports to you with a message when it is done.", false,
		object([]string{"message"}, map[string]any{
			"message":  text("the task, with everything that the agent must know"),
			"name":     text("a short name"),
			"provider": text("another agent program than yours"),
			"model":    text("a model of that program"),
			"profile":  map[string]any{"type": "string", "enum": []string{"plan", "ask", "edit", "full"}, "description": "at most your own, which it has without one"},
		})),
	tool("thread_send", "Send a message to a thread that you started, or to the one that started you. It is read after the turn that runs there.", false,
		object([]string{"thread_id", "message"}, map[string]any{"thread_id": text("of thread_start"), "message": text("what to say")})),
	tool("goal_update", "Say that the goal of this thread is reached, or that you cannot go on without a person. Only for a thread that has a goal.", true,
		object([]string{"status"}, map[string]any{
			"status": map[string]any{"type": "string", "enum": []string{"complete", "blocked"}, "description": "complete: it is reached and you have checked that; blocked: you cannot go on"},
			"note":   text("what you need, when you are blocked"),
		})),
}

// asker is the turn that calls a tool.
type asker struct {
	gateway.Claim
	th      fold.Thread
	profile thole.Profile // neutral, "" for any other
}

// actor acts for the owner of the thread, and is nobody else.
func (a asker) actor() thole.Actor {
	return thole.Actor{User: a.Owner.User, Via: thole.AgentActor.Via, Client: "agent of thread " + string(a.Thread)}
}

// acts refuses what changes something in a turn that only plans.
func (a asker) acts(name string) error {
	if unguarded.Build {
		return nil
	}
	switch a.profile {
	case thole.ProfileAsk, thole.ProfileEdit, thole.ProfileFull:
		return nil
	case thole.ProfilePlan:
		return thole.Errorf(thole.CodeForbidden, "%s is not available while planning: nothing may be changed yet", name)
	}
	return thole.Errorf(thole.CodeForbidden, "%s is available with the profiles ask, edit and full only", name)
}

// call answers tools/call. What a tool says of a mistake is a result too: the model reads it.
func (s *Server) call(w http.ResponseWriter, r *http.Request, c gateway.Claim, m message) {
	p, bad := callParams(m.Params)
	if bad != nil {
		write(w, http.StatusOK, reply{ID: m.ID, Error: bad})
		return
	}
	do := map[string]func(context.Context, asker, json.RawMessage) (string, error){
		"job_run": s.jobRun, "job_status": s.jobStatus, "ask_user": s.askUser, "thread_start": s.threadStart, "thread_send": s.threadSend, "goal_update": s.goalUpdate,
	}[p.Name]
	if do == nil {
		write(w, http.StatusOK, reply{ID: m.ID, Error: &failure{badParams, "this server has no such tool"}})
		return
	}
	run := func(ctx context.Context) reply {
		who, err := s.who(ctx, c)
		said := ""
		if err == nil {
			said, err = do(ctx, who, p.Arguments)
		}
		return reply{ID: m.ID, Result: s.result(said, err, p.Name, c)}
	}
	if p.Name == "ask_user" {
		stream(w, r, p.Meta.Progress, "the user", run)
		return
	}
	write(w, http.StatusOK, run(r.Context()))
}

// who reads the thread and the profile of the turn that asks.
func (s *Server) who(ctx context.Context, c gateway.Claim) (asker, error) {
	th, err := s.cfg.Threads.Get(ctx, thole.SystemActor, c.Thread)
	if err != nil {
		return asker{}, err
	}
	t, err := s.cfg.Threads.Turn(ctx, thole.SystemActor, c.Thread, c.Turn)
	if err != nil {
		return asker{}, err
	}
	if t.Outcome != "" || th.Owner != c.Owner {
		return asker{}, thole.Errorf(thole.CodeGone, "the turn is over")
	}
	return asker{Claim: c, th: th, profile: provider.Neutral(c.Provider, t.Settings.Profile)}, nil
}

// result is the result of a tool. Only our own errors are shown.
func (s *Server) result(said string, err error, name string, c gateway.Claim) map[string]any {
	if err != nil {
		said = name + " failed"
		var own *thole.Error
		if errors.As(err, &own) {
			said += ": " + own.Error()
			if hint := thole.HintOf(err); hint != "" {
				said += " (" + hint + ")"
			}
		}
		if code := thole.CodeOf(err); code == thole.CodeInternal || code == thole.CodeUnavailable {
			s.cfg.Log.Warn("tool of an agent", "thread", c.Thread, "turn", c.Turn, "err", fmt.Errorf("%s: %w", name, err))
		}
	}
	return map[string]any{"content": []any{map[string]string{"type": "text", "text": said}}, "isError": err != nil}
}

// stream answers when a tool that waits has, and says meanwhile that it does: clients give
// up on a server that is silent.
func stream(w http.ResponseWriter, r *http.Request, token json.RawMessage, whom string, run func(context.Context) reply) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	_ = control.Flush()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	done := make(chan reply, 1)
	go func() { done <- run(ctx) }()
	send := func(v any) error {
		body, err := json.Marshal(v)
		if err == nil {
			_, err = w.Write([]byte("event: message\ndata: " + string(body) + "\n\n"))
		}
		if err == nil {
			err = control.Flush()
		}
		return err
	}
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case out := <-done:
			out.Version = "2.0"
			_ = send(out)
			return
		case <-tick.C:
		}
		var err error
		if len(token) > 0 && len(token) < 256 && token[0] != '{' && token[0] != '[' {
			err = send(map[string]any{"jsonrpc": "2.0", "method": "notifications/progress", "params": map[string]any{"progressToken": token, "progress": n, "message": "waiting for " + whom + ", " + strconv.Itoa(n*int(keepAlive/time.Second)) + " s"}})
		} else if _, err = w.Write([]byte(": waiting\n\n")); err == nil {
			err = control.Flush()
		}
		if err != nil { // the client left
			cancel()
			<-done
			return
		}
	}
}

// read takes a tool's arguments, by their exact names and no others.
func read[T any](raw json.RawMessage) (v T, err error) {
	if err = strictjson.UnmarshalKnown(raw, &v); err != nil {
		err = thole.Errorf(thole.CodeInvalid, "the arguments are not valid: %w", err)
	}
	return v, err
}
