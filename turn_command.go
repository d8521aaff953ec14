package thole

import (
	"strconv"
	"strings"
)

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
	// TurnCommandUndo puts the thread's files back to what they were before an earlier
	// turn. No agent runs; it learns of it with the next message.
	TurnCommandUndo TurnCommand = "undo"
	// TurnCommandReview has the agent review code. It reads a prompt; people see what is
	// reviewed.
	TurnCommandReview TurnCommand = "review"
	// TurnCommandGoal has the agent work at the thread's goal. It reads a prompt, and takes
	// messages while it works as in any turn.
	TurnCommandGoal TurnCommand = "goal"
)

// The input of a command turn reads as a user of a terminal types it, so code that
// shows inputs needs no case for command turns.
const (
	shellMark, compactText, setupText = "!", "/compact", "/setup"
	undoMark, reviewMark, goalMark    = "/undo ", "/review ", "/goal "
)

// Shell is the input of a turn that runs a command line.
func Shell(line string) []Input {
	return []Input{{Type: string(TurnCommandShell), Text: shellMark + line}}
}

// Compact is the input of a turn that compacts.
func Compact() []Input { return []Input{{Type: string(TurnCommandCompact), Text: compactText}} }

// Setup is the input of a turn that sets the workspace up.
func Setup() []Input { return []Input{{Type: string(TurnCommandSetup), Text: setupText}} }

// Undo is the input of a turn that puts files back to what they were before a turn.
func Undo(turn int) []Input {
	return []Input{{Type: string(TurnCommandUndo), Text: undoMark + strconv.Itoa(turn)}}
}

// Goal is the input of a turn that works at a goal.
func Goal(objective string) []Input {
	return []Input{{Type: string(TurnCommandGoal), Text: goalMark + objective}}
}

// Review is the input of a turn that reviews something: what it is called, and what the
// agent reads.
func Review(what, prompt string) []Input {
	what = strings.Join(strings.Fields(what), " ")
	return []Input{{Type: string(TurnCommandReview), Text: reviewMark + what + "\n\n" + prompt}}
}

// ReviewPrompt is what the agent reads in a turn that reviews, "" in others.
func ReviewPrompt(input []Input) string {
	if c, _ := TurnCommandOf(input); c != TurnCommandReview {
		return ""
	}
	_, prompt, _ := strings.Cut(input[0].Text, "\n\n")
	return prompt
}

// TurnCommandOf returns the command of an input, "" for a message to the agent,
// and the command line of a shell command, the number of the turn of an undo, what
// is reviewed, or the objective of a goal.
func TurnCommandOf(input []Input) (c TurnCommand, line string) {
	if len(input) != 1 {
		return "", ""
	}
	switch c = TurnCommand(input[0].Type); c {
	case TurnCommandShell:
		return c, strings.TrimPrefix(input[0].Text, shellMark)
	case TurnCommandUndo:
		return c, strings.TrimPrefix(input[0].Text, undoMark)
	case TurnCommandReview:
		what, _, _ := strings.Cut(strings.TrimPrefix(input[0].Text, reviewMark), "\n\n")
		return c, what
	case TurnCommandGoal:
		return c, strings.TrimPrefix(input[0].Text, goalMark)
	case TurnCommandCompact, TurnCommandSetup:
		return c, ""
	}
	return "", ""
}

// AgentRuns reports whether a turn of this command, or of none, runs the agent.
func (c TurnCommand) AgentRuns() bool { return c.AgentReads() || c == TurnCommandCompact }

// AgentReads reports whether the agent reads something in a turn of this command, or of
// none.
func (c TurnCommand) AgentReads() bool {
	return c == "" || c == TurnCommandReview || c == TurnCommandGoal
}
