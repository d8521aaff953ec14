package acp

import (
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/protocol/app"
)

// slashCommands are prompts that are no messages to the agent.
var slashCommands = []command{
	{Name: "compact", Description: "Have the agent shorten what it remembers of the conversation"},
	{Name: "review", Description: "Review uncommitted changes, or what the instructions name", Input: object{"hint": "what to review"}},
	{Name: "shell", Description: "Run a command in the session's directory, in the sandbox; the agent hears of it", Input: object{"hint": "command"}},
}

func (s *session) commands() {
	s.update(object{"sessionUpdate": "available_commands_update", "availableCommands": slashCommands})
}

// slash runs one of slashCommands and reports whether the prompt was one. Calls are made
// once: a command that ran twice would be worse than one that must be given again.
func (s *session) slash(p *prompt, in []app.UserInput) (bool, error) {
	if len(in) == 0 || in[0].Type != "text" {
		return false, nil
	}
	name, rest, _ := strings.Cut(strings.TrimSpace(in[0].Text), " ")
	rest = strings.TrimSpace(rest)
	var err error
	switch name {
	case "/compact":
		p.command = true
		_, err = once[app.Empty](s.ctx, s.srv.owner, "thread/compact/start", app.ThreadParams{ThreadID: s.id})
	case "/shell":
		if rest == "" {
			return true, thole.Errorf(thole.CodeInvalid, "/shell needs a command")
		}
		p.command = true
		_, err = once[app.Empty](s.ctx, s.srv.owner, "thread/shellCommand", app.ShellCommandParams{ThreadID: s.id, Command: rest})
	case "/review":
		target := app.ReviewTarget{Type: "uncommittedChanges"}
		if rest != "" {
			target = app.ReviewTarget{Type: "custom", Instructions: rest}
		}
		var got app.ReviewStartResult
		got, err = once[app.ReviewStartResult](s.ctx, s.srv.owner, "review/start", app.ReviewStartParams{ThreadID: s.id, Target: target})
		p.turn = got.Turn.ID
	default:
		return false, nil
	}
	return true, err
}
