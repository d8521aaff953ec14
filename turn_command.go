package thole

import "strings"

// TurnCommand is what a command turn does instead of sending a message to the
// agent. It is the turn's only input; the turn has no user message and cannot be
// steered. Its values are stored as the type of an input.
type TurnCommand string

const (
	// TurnCommandShell is a command line that the user runs in the thread's workspace,
	// with the rights of the executor and not of the agent. The agent receives the
	// command and its output with the next message.
	TurnCommandShell TurnCommand = "shell"
	// TurnCommandCompact has the agent shorten its own context.
	TurnCommandCompact TurnCommand = "compact"
	// TurnCommandSetup runs the setup of the thread's workspace again, as a command of
	// the user's.
	TurnCommandSetup TurnCommand = "setup"
)

// ByHand reports whether the command is the user's own doing, for which no agent and no
// model is needed.
func (c TurnCommand) ByHand() bool { return c == TurnCommandShell || c == TurnCommandSetup }

// The input of a command turn reads as a user of a terminal types it, so code that
// shows inputs needs no case for command turns.
const shellMark, compactText, setupText = "!", "/compact", "/setup"

// Shell is the input of a turn that runs a command line.
func Shell(line string) []Input {
	return []Input{{Type: string(TurnCommandShell), Text: shellMark + line}}
}

// Compact is the input of a turn that compacts.
func Compact() []Input { return []Input{{Type: string(TurnCommandCompact), Text: compactText}} }

// Setup is the input of a turn that sets the workspace up.
func Setup() []Input { return []Input{{Type: string(TurnCommandSetup), Text: setupText}} }

// TurnCommandOf returns the command of an input, "" for a message to the agent,
// and the command line of a shell command.
func TurnCommandOf(input []Input) (c TurnCommand, line string) {
	if len(input) != 1 {
		return "", ""
	}
	switch c = TurnCommand(input[0].Type); c {
	case TurnCommandShell:
		return c, strings.TrimPrefix(input[0].Text, shellMark)
	case TurnCommandCompact, TurnCommandSetup:
		return c, ""
	}
	return "", ""
}
