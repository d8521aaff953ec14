package appserver

import (
	"cmp"
	"encoding/json"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/version"
	"github.com/tholehq/thole/protocol/app"
)

// Converters from the nouns of the thread machine to the wire, and back.

func (s *Server) thread(t fold.Thread) app.Thread {
	name := cmp.Or(t.Settings.Provider, s.catalog.provider())
	model := s.catalog.wireModel(name, t.Settings.Model)
	recency := t.Updated.Unix()
	direct := !t.Archived
	cwd := t.WorkDir()
	out := app.Thread{
		ID: string(t.ID), Environments: []app.Environment{{EnvironmentID: "local", Cwd: cwd, RuntimeWorkspaceRoots: []string{cwd}}}, SessionID: string(t.ID), ForkedFromID: ptr(t.ForkedFrom), ParentThreadID: ptr(t.Parent),
		Preview: t.Preview, Ephemeral: t.Ephemeral, HistoryMode: "paginated", ModelProvider: name, Model: &model,
		ReasoningEffort: ptr(t.Settings.Effort), CreatedAt: t.Created.Unix(), UpdatedAt: t.Updated.Unix(), RecencyAt: &recency,
		Status: status(t.Status), Cwd: cwd, CLIVersion: version.Codex, Originator: ptr(t.Client),
		Source: "appServer", DirectInput: &direct, Name: ptr(t.Name), Turns: []app.Turn{},
	}
	if t.Source != sourceApp && t.Client != "" {
		out.ThreadSource = ptr(t.Source)
	}
	return out
}

// sourceApp is the source of threads whose client did not say what they are for.
const sourceApp = "app"

func status(st event.Status) app.ThreadStatus {
	switch {
	case st.Active:
		flags := []string{}
		if st.WaitingOnApproval {
			flags = append(flags, app.FlagWaitingOnApproval)
		}
		if st.WaitingOnInput {
			flags = append(flags, app.FlagWaitingOnInput)
		}
		return app.ThreadStatus{Type: app.StatusActive, ActiveFlags: flags}
	case !st.Loaded:
		return app.ThreadStatus{Type: app.StatusNotLoaded}
	case st.SystemError:
		return app.ThreadStatus{Type: app.StatusSystemError}
	}
	return app.ThreadStatus{Type: app.StatusIdle}
}

// turn is a turn without items.
func turn(t fold.Turn) app.Turn {
	id := string(t.ID)
	out := app.Turn{ID: id, RootTurnID: &id, Items: []app.Item{}, ItemsView: app.ItemsNotLoaded, Status: app.TurnInProgress}
	if !t.Created.IsZero() {
		out.StartedAt = new(t.Created.Unix())
	}
	switch t.Outcome {
	case "":
		return out
	case thole.OutcomeCompleted:
		out.Status = app.TurnCompleted
	case thole.OutcomeFailed:
		out.Status = app.TurnFailed
		out.Error = turnError(t.Error)
	default:
		out.Status = app.TurnInterrupted
	}
	if !t.Stamp.Ended.IsZero() {
		out.CompletedAt = new(t.Stamp.Ended.Unix())
	}
	if !t.Stamp.Ended.IsZero() && !t.Created.IsZero() {
		out.DurationMs = new(t.Stamp.Ended.Sub(t.Created).Milliseconds())
	}
	return out
}

// accepted is a turn as the answer to its start shows it: nothing has happened.
func accepted(t fold.Turn) app.Turn {
	out := turn(t)
	out.StartedAt, out.CompletedAt, out.DurationMs, out.Error, out.Status = nil, nil, nil, nil, app.TurnInProgress
	return out
}

func turnError(e *thole.TurnError) *app.TurnError {
	if e == nil {
		return &app.TurnError{Message: "the turn failed", Info: json.RawMessage(`"other"`)}
	}
	out := &app.TurnError{Message: e.Message, Info: json.RawMessage(`"` + errorInfo(e.Code) + `"`), Details: ptr(e.Hint)}
	if e.Code == thole.ErrNetwork {
		info, _ := json.Marshal(map[string]any{"responseStreamDisconnected": map[string]any{"httpStatusCode": statusOrNil(e.Status)}})
		out.Info = info
	}
	return out
}

func statusOrNil(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

func errorInfo(c thole.ErrorCode) string {
	switch c {
	case thole.ErrAuth:
		return "unauthorized"
	case thole.ErrRateLimit:
		return "usageLimitExceeded"
	case thole.ErrOverloaded:
		return "serverOverloaded"
	case thole.ErrContextTooLong:
		return "contextWindowExceeded"
	case thole.ErrBadRequest:
		return "badRequest"
	case thole.ErrProviderCrashed:
		return "internalServerError"
	}
	return "other"
}

func usage(u thole.Usage) app.TokenUsage {
	in := u.Input + u.CacheRead + u.CacheWrite
	return app.TokenUsage{
		TotalTokens: in + u.Output, InputTokens: in, CachedInputTokens: u.CacheRead, CacheWriteInputTokens: u.CacheWrite,
		OutputTokens: u.Output, ReasoningOutputTokens: u.Reasoning,
	}
}

func plan(todos []event.Todo) []app.PlanStep {
	steps := make([]app.PlanStep, 0, len(todos))
	for _, t := range todos {
		st := "pending"
		switch t.State {
		case event.TodoDoing:
			st = "inProgress"
		case event.TodoDone, event.TodoCanceled:
			st = "completed"
		}
		steps = append(steps, app.PlanStep{Step: t.Content, Status: st})
	}
	return steps
}

func millis(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	return new(thole.Millis(t))
}

// inputs reads what a client says. Kinds that threads do not carry are sent as
// text or refused, never dropped.
func inputs(in []app.UserInput) ([]thole.Input, error) {
	out := make([]thole.Input, 0, len(in))
	for i, p := range in {
		switch p.Type {
		case "text":
			out = append(out, thole.Input{Type: "text", Text: p.Text})
		case "image":
			if p.URL == "" {
				return nil, thole.Errorf(thole.CodeInvalid, "input part %d: an image needs a url", i)
			}
			out = append(out, thole.Input{Type: "image", URL: p.URL})
		case "localImage":
			out = append(out, thole.Input{Type: "image", URL: p.Path})
		case "skill", "mention":
			out = append(out, thole.Input{Type: "text", Text: "[" + p.Name + "](" + p.Path + ")"})
		case "":
			return nil, invalid("missing field `type`")
		default:
			return nil, invalid("unknown variant `%s`, expected one of `text`, `image`, `localImage`, `skill`, `mention`", p.Type)
		}
	}
	return out, nil
}

func userInputs(in []thole.Input) []app.UserInput {
	out := make([]app.UserInput, 0, len(in))
	for _, p := range in {
		if p.Type == "image" {
			out = append(out, app.UserInput{Type: "image", URL: p.URL})
			continue
		}
		out = append(out, app.UserInput{Type: "text", Text: p.Text, TextElements: []json.RawMessage{}})
	}
	return out
}

func queued(m event.Message) app.QueuedSubmission {
	return app.QueuedSubmission{ID: string(m.ID), Input: userInputs(m.Input), ClientUserMessageID: m.ClientID}
}
