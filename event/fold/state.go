package fold

import (
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// State is the fold of a thread's log as far as decisions, snapshots and encoders
// need it: the thread, its open turn, what is pending. Its size is bounded by the
// open turn. Values reachable from it are shared with snapshots and with its
// clones, so they are replaced, never changed in place.
type State struct {
	Row   Row
	Open  *Turn
	Items []ItemRecord // of the open turn, in order of their start
	Asks  []AskRecord  // pending, oldest first
	// Settled are the open turn's asks that are not pending any more.
	Settled []AskRecord
	Todos   []event.Todo
	Queue   []event.Message
}

// Clone returns a state that can be folded further while the original stays as it
// is. Only one of a state's clones may live on.
func (s *State) Clone() *State {
	c := *s
	return &c
}

// Copy returns a state that can be folded further independently of the original and its other
// copies: what is appended to one is not written where another may append.
func (s *State) Copy() *State {
	c := *s
	c.Items, c.Asks, c.Settled = slices.Clip(s.Items), slices.Clip(s.Asks), slices.Clip(s.Settled)
	c.Todos, c.Queue = slices.Clip(s.Todos), slices.Clip(s.Queue)
	return &c
}

// Seq is the sequence number of the last event folded.
func (s *State) Seq() uint64 { return s.Row.Thread.Seq }

// OpenID is the open turn's id, "" when idle.
func (s *State) OpenID() thole.TurnID {
	if s.Open == nil {
		return ""
	}
	return s.Open.ID
}

// Item is the index of an item of the open turn, -1 when it has none such.
func (s *State) Item(id thole.ItemID) int {
	for i := len(s.Items) - 1; i >= 0; i-- {
		if s.Items[i].Item.ID == id {
			return i
		}
	}
	return -1
}

// Ask returns a pending ask.
func (s *State) Ask(id thole.AskID) (AskRecord, bool) {
	for _, a := range s.Asks {
		if a.Ask.ID == id {
			return a, true
		}
	}
	return AskRecord{}, false
}

// Asked reports whether the open turn has had this ask.
func (s *State) Asked(id thole.AskID) bool {
	_, known := s.AnyAsk(id)
	return known
}

// AnyAsk returns an ask of the open turn, pending or settled.
func (s *State) AnyAsk(id thole.AskID) (AskRecord, bool) {
	if r, ok := s.Ask(id); ok {
		return r, true
	}
	for _, a := range s.Settled {
		if a.Ask.ID == id {
			return a, true
		}
	}
	return AskRecord{}, false
}

// QueuedAt is the index of a queued message, -1 when it is not queued.
func (s *State) QueuedAt(id thole.MessageID) int {
	return slices.IndexFunc(s.Queue, func(m event.Message) bool { return m.ID == id })
}

// withItem replaces or appends an item without touching the shared slice.
func (s *State) withItem(r ItemRecord) {
	i := s.Item(r.Item.ID)
	if i < 0 {
		s.Items = append(s.Items, r)
		return
	}
	items := make([]ItemRecord, len(s.Items), max(cap(s.Items), len(s.Items)+8))
	copy(items, s.Items)
	items[i] = r
	s.Items = items
}

// Status derives what clients see from the facts. loaded comes from outside: it
// is the one fact that is not in the log.
func (r Row) Status(loaded bool) event.Status {
	open := r.Thread.Open != ""
	return event.Status{
		Loaded:            loaded || open,
		Active:            open,
		WaitingOnApproval: open && r.Approvals > 0,
		WaitingOnInput:    open && r.Inputs > 0,
		SystemError:       !open && r.LastOutcome == thole.OutcomeFailed,
	}
}

// View is the row as a client's value.
func (r Row) View(loaded bool) Thread {
	t := r.Thread
	t.Status = r.Status(loaded)
	return t
}
