// Package wire is the HTTP interface between executord and the dispatcher.
package wire

import (
	"encoding/json"
	"net/http"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// Mark names the variable with the executor's id in the environment of every
// process of an executor, by which its driver finds them.
const Mark = "THOLE_EXECUTOR"

// RunRequest starts a run: one try of a provider at a turn. A turn that lost its
// provider, or that goes on after a human's answer, gets another run. Turn.ID is
// the run's own id, from which the provider derives its event ids; For is the
// turn. Repeating a request changes nothing and returns the run's state.
type RunRequest struct {
	Turn     provider.Turn   `json:"turn"`
	For      thole.TurnID    `json:"for"`
	Thread   thole.ThreadID  `json:"thread"`
	Provider string          `json:"provider"`
	Session  SessionSettings `json:"session"`
	// Grant is the turn's credentials. It is kept in memory and in the auth
	// directory, never in the log.
	Grant provider.Grant `json:"grant"`
	// Receipted is of Turn.Reply.
	Receipted
}

// SessionSettings is what of provider.SessionConfig the dispatcher decides; paths
// are executord's own.
type SessionSettings struct {
	Resume string `json:"resume,omitempty"`
	Fork   bool   `json:"fork,omitempty"`
	// Fresh wants a new session, also where one runs.
	Fresh bool `json:"fresh,omitempty"`
	// Tools are the thread's client's own.
	Tools []event.ClientTool `json:"tools,omitempty"`
	event.Settings
}

// RunState is how far a run got.
type RunState string

const (
	RunRunning RunState = "running"
	RunWaiting RunState = "waiting_human"
	RunEnded   RunState = "ended"
	// RunLost: executord restarted while it ran; its provider is gone. The
	// log holds what was said before.
	RunLost RunState = "lost"
)

// Run is one run as executord knows it.
type Run struct {
	ID       thole.TurnID   `json:"id"`
	For      thole.TurnID   `json:"for"`
	Thread   thole.ThreadID `json:"thread"`
	Provider string         `json:"provider"`
	State    RunState       `json:"state"`
	NativeID string         `json:"native_id,omitempty"`
	Cursor   uint64         `json:"cursor"` // the last one in the log
	Acked    uint64         `json:"acked"`  // the last one that was acknowledged
	Started  time.Time      `json:"started"`
	// Receipts: events of this run say with which receipt an answer came.
	Receipts bool `json:"receipts,omitempty"`
	// Again says why the turn is to be taken up again by another run, where this one ended
	// without its end.
	Again string `json:"again,omitempty"`
}

// Revision is raised whenever a request gets a member that the executords before would
// refuse: they refuse what they do not know. Executors outlive the server, so a new one
// meets those that an earlier one started.
const Revision = 4

// Status is what the executor is doing.
type Status struct {
	Boot    string    `json:"boot"` // changes with every start of executord
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Runs    []Run     `json:"runs"`
	// Terminals counts the open ones.
	Terminals int `json:"terminals"`
	// Commands counts the programs that users run through the exec-server.
	Commands int `json:"commands,omitempty"`
	// Jobs are those whose command was started here and not forgotten.
	Jobs        []thole.JobID `json:"jobs,omitempty"`
	JobsRunning int           `json:"jobs_running,omitempty"`
	// Gateway says that agents here can reach the model gateway. Executors that were
	// started by an earlier version do not say so.
	Gateway bool `json:"gateway,omitempty"`
	// Revision is that of the requests which this executord understands.
	Revision int `json:"revision,omitempty"`
}

// Network is what the executor's processes exchanged with the network since the last run ended.
type Network struct {
	Traffic []event.Traffic `json:"traffic"`
	// Models are the model endpoints that pass every policy but none, HOST:PORT.
	Models []string `json:"models,omitempty"`
}

// NetworkRequest sets what the thread's agents reach, at once; nil: what the
// configuration allows.
type NetworkRequest struct {
	Network *event.NetworkPolicy `json:"network"`
}

// ServerRequest calls an MCP server of the agent of a thread.
type ServerRequest struct {
	Thread thole.ThreadID `json:"thread"`
	provider.ServerCall
}

// ServerAnswer is what it answers.
type ServerAnswer struct {
	Result json.RawMessage `json:"result"`
}

// SteerRequest adds input to a run.
type SteerRequest struct {
	Run thole.TurnID `json:"run"`
	// ID makes a repeat harmless.
	ID       thole.MessageID `json:"id"`
	Input    []thole.Input   `json:"input"`
	ClientID string          `json:"client_id,omitempty"`
}

// CancelRequest stops a run: gracefully, or with Kill at once.
type CancelRequest struct {
	Run  thole.TurnID `json:"run"`
	Kill bool         `json:"kill,omitempty"`
}

// Receipted names the event that recorded what a request brings. It travels next to
// the body: an executord that does not know of it takes the rest.
type Receipted struct {
	Receipt thole.EventID `json:"-"`
}

const receiptHeader = "Thole-Receipt"

// WriteHeader puts the receipt into a request's headers.
func (r Receipted) WriteHeader(h http.Header) {
	if r.Receipt != "" {
		h.Set(receiptHeader, string(r.Receipt))
	}
}

// ReadHeader takes it from there.
func (r *Receipted) ReadHeader(h http.Header) { r.Receipt = thole.EventID(h.Get(receiptHeader)) }

// ReplyRequest answers, or with Defer parks, a pending ask.
type ReplyRequest struct {
	Run    thole.TurnID `json:"run"`
	Ask    thole.AskID  `json:"ask"`
	Answer event.Answer `json:"answer"`
	Defer  bool         `json:"defer,omitempty"`
	Receipted
}

// AckRequest says that the dispatcher has stored a run's events up to Cursor.
// With Forget the run is over for it and the log may go.
type AckRequest struct {
	Run    thole.TurnID `json:"run"`
	Cursor uint64       `json:"cursor"`
	Forget bool         `json:"forget,omitempty"`
}

// LogEvent is one line of a run's event stream.
type LogEvent struct {
	Cursor uint64      `json:"cursor"`
	Event  event.Event `json:"event"`
}

// UnmarshalJSON also reads what executors of earlier versions write.
func (l *LogEvent) UnmarshalJSON(data []byte) error {
	var raw struct {
		Cursor uint64          `json:"cursor"`
		Event  json.RawMessage `json:"event"`
	}
	err := strictjson.Unmarshal(data, &raw)
	if err == nil {
		l.Cursor = raw.Cursor
		l.Event, err = ReadEvent(raw.Event)
	}
	return err
}

// ReadEvent reads an event of an executor's log, of this version or an earlier one.
func ReadEvent(data []byte) (event.Event, error) {
	var reported event.Reported
	err := strictjson.Unmarshal(data, &reported)
	return reported.Current(), err
}

// PendingAsk is an ask that a run waits on.
type PendingAsk struct {
	Run thole.TurnID `json:"run"`
	For thole.TurnID `json:"for"`
	Ask event.Ask    `json:"ask"`
}

// Pending lists what waits for a human.
type Pending struct {
	Pending []PendingAsk `json:"pending"`
}
