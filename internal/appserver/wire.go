package appserver

import (
	"cmp"
	"encoding/json"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
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
		Status: status(t.Status), Cwd: cwd, CLIVersion: s.catalog.version(name), Originator: ptr(t.Client), GitInfo: gitInfo(t.Git),
		Source: "appServer", DirectInput: &direct, Name: ptr(t.Name), Turns: []app.Turn{},
	}
	if t.Pinned {
		out.Section = &pinned
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
	if e.Code != "" {
		out.Thole = &app.TurnErrorExtra{Code: string(e.Code)}
	}
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

// usage counts as Codex does: input includes what was cached, output what was reasoned.
func usage(u thole.Tokens) app.TokenUsage {
	in, out := u.Input+u.CacheRead+u.CacheWrite, u.Output+u.Reasoning
	return app.TokenUsage{
		TotalTokens: in + out, InputTokens: in, CachedInputTokens: u.CacheRead, CacheWriteInputTokens: u.CacheWrite,
		OutputTokens: out, ReasoningOutputTokens: u.Reasoning,
	}
}

// lastCall is the newest model call of a turn. Earlier versions did not record it; then
// it is taken to be all of the turn.
func lastCall(u thole.Usage) thole.Tokens {
	if u.Last != nil {
		return *u.Last
	}
	return u.Tokens()
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

func userInputs(in []thole.Input) []app.UserInput {
	out := make([]app.UserInput, 0, len(in))
	for _, p := range in {
		if p.Type == "image" {
			out = append(out, app.UserInput{Type: "image", URL: p.URL})
			continue
		}
		text := p.Text
		if p.Type == thole.InputFile { // which Codex's clients do not know
			text = "[file " + p.Name + "]"
		}
		out = append(out, app.UserInput{Type: "text", Text: text, TextElements: []json.RawMessage{}})
	}
	return out
}

func queued(m event.Message) app.QueuedSubmission {
	return app.QueuedSubmission{ID: string(m.ID), Input: userInputs(m.Input), ClientUserMessageID: m.ClientID}
}
