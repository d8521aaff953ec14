package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"

	thole "github.com/tholehq/thole"
)

// Exit codes of every command. ExitCodes documents them; nothing else ends a command
// with a number of its own, but for those that pass on another program's status.
const (
	exitDone        = 0
	exitInternal    = 1 // never for an ordinary failure
	exitInvalid     = 2
	exitNotFound    = 3
	exitConflict    = 4
	exitBusy        = 5
	exitForbidden   = 6
	exitUnavailable = 7
	exitHuman       = 8 // waits for a human
	exitFailed      = 9 // what ran has failed; thole has not
	exitInterrupted = 130
)

// Error codes of the command line alone; the owner never sends them.
const (
	codeFailed      thole.Code = "failed"
	codeInterrupted thole.Code = "interrupted"
)

// ExitCode is a row of the documented table.
type ExitCode struct {
	Number        int
	Meaning, Help string
	Codes         []thole.Code // errors that end a command with it
}

// ExitCodes is the whole table.
func ExitCodes() []ExitCode {
	return []ExitCode{
		{exitDone, "done", "", nil},
		{exitInternal, "internal error: a fault of thole", "run again with `--json` and report it", []thole.Code{thole.CodeInternal}},
		{exitInvalid, "the request can never succeed as written", "read the message; `--help` lists the flags", []thole.Code{thole.CodeInvalid}},
		{exitNotFound, "not found, or gone", "check the id", []thole.Code{thole.CodeNotFound, thole.CodeGone}},
		{exitConflict, "conflict: the expected state was not the actual one, as of a turn that was interrupted; or a budget is spent", "look at the current state, decide again; `thole budget list`", []thole.Code{thole.CodeConflict, thole.CodeBudgetExceeded}},
		{exitBusy, "busy, overloaded or too late; nothing happened", "try again", []thole.Code{thole.CodeBusy, thole.CodeOverloaded}},
		{exitForbidden, "not allowed", "use an account or a token that may", []thole.Code{thole.CodeForbidden, thole.CodeUnauthorized}},
		{exitUnavailable, "a part, a service or a capability is missing or not reached", "`thole doctor` says which and how to get it", []thole.Code{thole.CodeUnavailable, thole.CodeUnsupported}},
		{exitHuman, "waits for a human: a question of an agent, or a batch that is held", "`thole thread show THREAD` shows the question, `thole batch inspect` the batch and what to type", []thole.Code{thole.CodeHeld}},
		{exitFailed, "what ran has failed: the agent's turn, a job, or a check", "the message says why; `thole thread show`, `thole job query` too", []thole.Code{codeFailed}},
		{exitInterrupted, "interrupted with Ctrl-C; what the message names goes on", "", []thole.Code{codeInterrupted}},
	}
}

// ExitError ends the program with a code of its own, for commands that pass on
// another program's exit status. It prints nothing.
type ExitError int

func (e ExitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func exitCode(err error) int {
	var exit ExitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &exit):
		return int(exit)
	}
	code := codeOf(err)
	for _, row := range ExitCodes() {
		if slices.Contains(row.Codes, code) {
			return row.Number
		}
	}
	return exitInternal
}

// codeOf is the class of an error. Errors of the system and the network that nobody
// classified say that a part is missing, not that thole is wrong.
func codeOf(err error) thole.Code {
	if errors.Is(err, context.Canceled) {
		return codeInterrupted
	}
	code := thole.CodeOf(err)
	var classified *thole.Error
	var network net.Error
	var system syscall.Errno
	switch {
	case errors.As(err, &classified):
	case errors.Is(err, context.DeadlineExceeded):
		return thole.CodeBusy
	case errors.As(err, &network), errors.As(err, &system):
		return thole.CodeUnavailable
	}
	return code
}
