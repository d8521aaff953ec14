package fold

import (
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// Changes are the rows that events changed, each as it is afterwards. Apply adds to
// them; a store writes them in the transaction that appends the events.
type Changes struct {
	Turns     []Turn // inserted or updated
	Phases    []PhaseChange
	Items     []ItemRecord
	DropItems []ItemRecord
	// Closed items have their drafts removed.
	Closed []thole.ItemID
	Asks   []AskRecord
	// Todos replaces the list when Retodo is set, else it upserts.
	Retodo bool
	Todos  []event.Todo
	// Queued messages are upserted, Unqueued removed, then Order, when not nil,
	// renumbers all that are left.
	Queued   []event.Message
	Unqueued []thole.MessageID
	Order    []thole.MessageID
	// Settled are turns whose usage is final.
	Settled []Turn
	// Spent is what the time of turns that are over was spent on, known so far.
	Spent map[thole.TurnID]thole.TurnTime
	// Reverted is the number of the first turn that is no longer part of the thread, 0 when
	// none was reverted.
	Reverted int
	// Key is the idempotency key of the turn that this commit starts.
	Key string
}

func (c *Changes) putTurn(t Turn) {
	for i := range c.Turns {
		if c.Turns[i].ID == t.ID {
			c.Turns[i] = t
			return
		}
	}
	c.Turns = append(c.Turns, t)
}

func (c *Changes) putItem(r ItemRecord) {
	for i := range c.Items {
		if c.Items[i].Item.ID == r.Item.ID {
			c.Items[i] = r
			return
		}
	}
	c.Items = append(c.Items, r)
}

func (c *Changes) dropItem(r ItemRecord) {
	c.Items = slices.DeleteFunc(c.Items, func(have ItemRecord) bool { return have.Item.ID == r.Item.ID })
	c.DropItems = append(c.DropItems, r)
	c.Closed = append(c.Closed, r.Item.ID)
}

func (c *Changes) putAsk(r AskRecord) {
	for i := range c.Asks {
		if c.Asks[i].Ask.ID == r.Ask.ID {
			c.Asks[i] = r
			return
		}
	}
	c.Asks = append(c.Asks, r)
}
