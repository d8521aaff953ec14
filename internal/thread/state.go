package thread

import (
	"slices"

	thole "github.com/tholehq/thole"
)

// state is the fold of a thread's log as far as decisions and snapshots need
// it: the thread, its open turn, what is pending. Its size is bounded by the
// open turn. Values reachable from it are shared with snapshots and with its
// clones, so they are replaced, never changed in place.
type state struct {
	row   Row
	open  *Turn
	items []ItemRecord // of the open turn, in order of their start
	asks  []AskRecord  // pending, oldest first
	// settled are the open turn's asks that are not pending any more.
	settled []AskRecord
	todos   []thole.Todo
	queue   []Message
}

func newState(h *Head) *state {
	return &state{row: h.Row, open: h.Open, items: h.Items, asks: h.Asks, settled: h.Settled, todos: h.Todos, queue: h.Queue}
}

// clone gives a state that can be folded further while the original stays as it
// is. Only one of a state's clones may live on.
func (s *state) clone() *state {
	c := *s
	return &c
}

func (s *state) seq() uint64 { return s.row.Thread.Seq }

// openID is the open turn's id, "" when idle.
func (s *state) openID() thole.TurnID {
	if s.open == nil {
		return ""
	}
	return s.open.ID
}

func (s *state) item(id thole.ItemID) int {
	for i := len(s.items) - 1; i >= 0; i-- {
		if s.items[i].Item.ID == id {
			return i
		}
	}
	return -1
}

func (s *state) ask(id thole.AskID) (AskRecord, bool) {
	for _, a := range s.asks {
		if a.Ask.ID == id {
			return a, true
		}
	}
	return AskRecord{}, false
}

// asked reports whether the open turn has had this ask.
func (s *state) asked(id thole.AskID) bool {
	_, known := s.anyAsk(id)
	return known
}

// anyAsk finds an ask of the open turn, pending or settled.
func (s *state) anyAsk(id thole.AskID) (AskRecord, bool) {
	if r, ok := s.ask(id); ok {
		return r, true
	}
	for _, a := range s.settled {
		if a.Ask.ID == id {
			return a, true
		}
	}
	return AskRecord{}, false
}

func (s *state) queued(id thole.MessageID) int {
	return slices.IndexFunc(s.queue, func(m Message) bool { return m.ID == id })
}

// withItem replaces or appends an item without touching the shared slice.
func (s *state) withItem(r ItemRecord) {
	i := s.item(r.Item.ID)
	if i < 0 {
		s.items = append(s.items, r)
		return
	}
	items := make([]ItemRecord, len(s.items), max(cap(s.items), len(s.items)+8))
	copy(items, s.items)
	items[i] = r
	s.items = items
}

// status derives what clients see from the facts. loaded comes from outside: it
// is the one fact that is not in the log.
func (r Row) status(loaded bool) Status {
	open := r.Thread.Open != ""
	return Status{
		Loaded:            loaded || open,
		Active:            open,
		WaitingOnApproval: open && r.Approvals > 0,
		WaitingOnInput:    open && r.Inputs > 0,
		SystemError:       !open && r.LastOutcome == thole.OutcomeFailed,
	}
}

// thread is the row as a client's value.
func (r Row) thread(loaded bool) Thread {
	t := r.Thread
	t.Status = r.status(loaded)
	return t
}
