package execclient

import (
	"encoding/json"

	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/exec"
)

// Kind is what happened to a process.
type Kind uint8

const (
	Output Kind = iota + 1 // a chunk of output
	Lost                   // Count events of output are gone: the server no longer had them
	Exited                 // the direct child ended; output may follow
	Closed                 // the end: exited, and no more output
	Failed                 // the end: the session is lost and the process's fate unknown
)

// Event is one thing that happened to a process, in order.
type Event struct {
	Kind   Kind
	Seq    uint64
	Stream string // Output: stdout, stderr, pty
	Data   []byte // Output

	ExitCode      int  // Exited
	SandboxDenied bool // Exited: the sandbox probably stopped it
	Count         int  // Lost
	Err           error

	legacy bool // exited by a server that does not say whether the sandbox denied
}

// decodeEvent reads a process notification; ok is false for any other.
func decodeEvent(method string, raw json.RawMessage) (ev Event, id string, ok bool) {
	switch method {
	case exec.NotifyOutput:
		var p exec.OutputParams
		if strictjson.Unmarshal(raw, &p) != nil {
			return ev, "", false
		}
		return Event{Kind: Output, Seq: p.Seq, Stream: p.Stream, Data: p.Chunk}, p.ProcessID, true
	case exec.NotifyExited:
		var p exec.ExitedParams
		if strictjson.Unmarshal(raw, &p) != nil {
			return ev, "", false
		}
		ev = Event{Kind: Exited, Seq: p.Seq, ExitCode: p.ExitCode, legacy: p.SandboxDenied == nil}
		ev.SandboxDenied = p.SandboxDenied != nil && *p.SandboxDenied
		return ev, p.ProcessID, true
	case exec.NotifyClosed:
		var p exec.ClosedParams
		if strictjson.Unmarshal(raw, &p) != nil {
			return ev, "", false
		}
		return Event{Kind: Closed, Seq: p.Seq}, p.ProcessID, true
	}
	return ev, "", false
}
