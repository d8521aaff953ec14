// Package fold makes state of events: a thread with its open turn, items, asks,
// todos, queue and usage. It is the only fold: the thread machine decides on it
// and commits the rows it changed, and encoders read from it. It has no clock, no
// ids of its own and no store.
package fold

import (
	"encoding/json"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// Thread is a durable conversation as it is now.
type Thread struct {
	ID         thole.ThreadID
	Owner      thole.Owner
	Name       string
	Preview    string // the first user text, bounded
	Settings   event.Settings
	NativeID   string // the provider's own session id
	Source     string // what made it: "app", "http", "cli", …
	Client     string // the creating client's name
	Files      thole.Source
	Tools      []event.ClientTool // its client's own
	Ephemeral  bool
	Archived   bool
	Pinned     bool // lists that ask for it show it first
	Git        event.Git
	ForkedFrom thole.ThreadID
	Parent     thole.ThreadID
	Created    time.Time
	Updated    time.Time
	// Origin is the native session a fork continues from, until it has its own.
	Origin string
	// Retell says that the agent remembers turns that were reverted, or none: its next session
	// is a new one and begins with the conversation as text.
	Retell bool
	// Seq is the last sequence number of the log, Floor the last one that retention
	// removed; Turns is the number of turns.
	Seq   uint64
	Floor uint64
	Turns int
	// Open is the turn that is not over, "" when idle.
	Open   thole.TurnID
	Status event.Status
	Usage  thole.Usage
	// Goal is what it works at by itself, nil when it has none.
	Goal *event.Goal
}

// WorkDir is the directory in which the agent works. Threads of earlier versions were
// given a directory that was a label; it is what their clients know them by.
func (t Thread) WorkDir() string {
	if t.Files.Kind == "" && t.Settings.Dir != "" {
		return t.Settings.Dir
	}
	return t.Files.WorkDir()
}

// SourceTitle is the source of a thread that makes the title of another.
const SourceTitle = "thread_title"

// Titles reports whether the thread makes titles: thole does so itself, without an agent.
func (t Thread) Titles() bool { return t.Source == SourceTitle && t.Ephemeral }

// Turn is one input taken to one outcome.
type Turn struct {
	ID       thole.TurnID
	Thread   thole.ThreadID
	Input    []thole.Input
	ClientID string
	Actor    thole.Actor
	Settings event.Settings  // effective for this turn
	Schema   json.RawMessage // of its last message, nil for any
	Phase    thole.Phase
	Outcome  thole.Outcome // "" while open
	Error    *thole.TurnError
	Usage    thole.Usage
	Executor thole.ExecutorID
	Runtime  string // version of the runtime manifest its workspace was made by; only where turns are read
	// Unsaved says why the files it ended with are not saved, "" when they are or will
	// be; only where turns are read.
	Unsaved string
	// Native is the provider's own session id as the turn left it; only where turns are read.
	Native string
	// Spent is what its time was spent on, nil while it is open or where nobody knows; only
	// where turns are read.
	Spent   *thole.TurnTime
	Trace   string
	Stamp   thole.Stamp
	Created time.Time
	// Number counts the thread's turns from 1. Seq is where the turn starts in the log.
	Number int
	Seq    uint64
	// Interrupted says that a user asked for the end; Stop is set when we did,
	// and then becomes the turn's error.
	Interrupted bool
	Stop        *thole.TurnError
	// Deferred is the ask this turn is parked on: no process runs it, and the
	// answer queues it again.
	Deferred thole.AskID
	// Reply is the deferred ask whose answer the next run of this turn begins with.
	Reply thole.AskID
	// Run counts how often the turn was begun again after its first run. A driver
	// names each run apart towards the provider, whose ids are unique within one.
	Run int
	// Steers are messages given to the turn that the agent has not taken in yet.
	// Those left over at the end go back to the head of the queue.
	Steers []event.Message
	// Items is filled only where a call says so.
	Items []event.Item
}

// ItemRecord is an item with its place in the log.
type ItemRecord struct {
	Turn thole.TurnID
	Seq  uint64
	// Open is true until the item completed: its text may still grow.
	Open bool
	Item event.Item
}

// AskRecord is an ask with its durable state.
type AskRecord struct {
	Ask      event.Ask
	Thread   thole.ThreadID
	Turn     thole.TurnID
	State    event.AskState
	Answer   *event.Answer
	Actor    thole.Actor // who answered
	Asked    time.Time
	Resolved time.Time
	// Receipt is the event that settled it, "" in rows of older versions. Nobody
	// inside an executor can know it before the answer comes with it.
	Receipt thole.EventID
}

// Row is a thread with the facts its status is derived from.
type Row struct {
	Thread Thread
	// Approvals and Inputs count the pending asks of either sort.
	Approvals int
	Inputs    int
	// LastOutcome is that of the newest ended turn; Paused says that a user
	// interrupted it, which holds the queue.
	LastOutcome thole.Outcome
	Paused      bool
	// Step is where the current model call of the open turn began.
	Step uint64
}

// PhaseChange moves a turn that has its outcome along the rest of the pipeline.
type PhaseChange struct {
	Turn  thole.TurnID
	Phase thole.Phase
}
