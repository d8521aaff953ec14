package thole

import "strings"

// Errand is what a user wants done in a turn instead of saying something to the
// agent. It stands alone in its turn, which has no user message and cannot be
// steered.
type Errand string

const (
	// ErrandShell is a command line that the user runs in the thread's workspace,
	// with the rights of the executor and not of the agent. The agent hears of it
	// with the next message.
	ErrandShell Errand = "shell"
	// ErrandCompact has the agent shorten its own context.
	ErrandCompact Errand = "compact"
)

// The input of an errand reads as a user of a terminal types it, so whatever
// shows inputs need not know of errands.
const shellMark, compactText = "!", "/compact"

// Shell is the input of a turn that runs a command line.
func Shell(line string) []Input {
	return []Input{{Type: string(ErrandShell), Text: shellMark + line}}
}

// Compact is the input of a turn that compacts.
func Compact() []Input { return []Input{{Type: string(ErrandCompact), Text: compactText}} }

// ErrandOf says which errand an input is, "" for one that is said to the agent,
// and the command line of a shell errand.
func ErrandOf(input []Input) (e Errand, line string) {
	if len(input) != 1 {
		return "", ""
	}
	switch e = Errand(input[0].Type); e {
	case ErrandShell:
		return e, strings.TrimPrefix(input[0].Text, shellMark)
	case ErrandCompact:
		return e, ""
	}
	return "", ""
}
