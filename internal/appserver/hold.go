package appserver

import (
	"slices"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// Agents begin a command or an edit before the model has written it. To clients it
// begins when it says what it does: they show it, and ask about it, once. Until then its
// start is held.

// shows reports whether an item says what it does.
func shows(i event.Item) bool {
	switch i.Kind {
	case event.ItemCommand:
		return i.Command != nil && i.Command.Line != ""
	case event.ItemFileChange:
		return slices.ContainsFunc(i.Changes, func(c event.FileChange) bool { return c.Diff != "" })
	}
	return true
}

// about is the item of an ask that is to be announced before it, with what the ask says;
// false when the ask says no more than its item.
func about(a event.Ask, i event.Item) (event.Item, bool) {
	if a.Item == "" || shows(i) && i.ID != "" {
		return i, false
	}
	i.ID = a.Item
	switch {
	case a.Kind == event.AskCommand && a.Command != "":
		var c event.Command
		if i.Command != nil {
			c = *i.Command
		}
		c.Line, c.Argv = a.Command, a.Argv
		if c.Dir == "" {
			c.Dir = a.Dir
		}
		i.Kind, i.Command = event.ItemCommand, &c
	case a.Kind == event.AskFileChange && len(a.Changes) > 0:
		i.Kind, i.Changes = event.ItemFileChange, a.Changes
	default:
		return i, false
	}
	return i, true
}

// item is an item of the open turn, the zero one when it has none such.
func (t *translator) item(id thole.ItemID) event.Item {
	if i := t.state.Item(id); i >= 0 {
		return t.state.Items[i].Item
	}
	return event.Item{}
}

// announced reports whether clients have heard of an item that began: it showed what it
// does, or an ask did. It is a function of the state, so that all translators agree; one
// that replays knows of what it held itself, and takes the rest to be heard.
func (t *translator) announced(id thole.ItemID) bool {
	if t.replay {
		return !t.held[id]
	}
	i := t.item(id)
	if i.ID != "" && shows(i) {
		return true
	}
	said := func(a fold.AskRecord) bool {
		_, ok := about(a.Ask, i)
		return ok && a.Ask.Item == id
	}
	return slices.ContainsFunc(t.state.Asks, said) || slices.ContainsFunc(t.state.Settled, said)
}

// announce encodes the start of an item.
func (t *translator) announce(e *event.Event, i event.Item) *frame {
	delete(t.held, i.ID)
	return started(string(e.Thread), string(e.Turn), i, thole.Millis(e.Time), t.state.Row.Thread.WorkDir())
}
