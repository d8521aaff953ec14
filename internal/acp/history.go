package acp

import (
	"time"

	"github.com/tholehq/thole/protocol/app"
)

// history sends the turns from one that the editor knows on, "" for all. What happens
// meanwhile may be part of it: items that were sent whole are not sent again.
func (s *session) history(from string) error {
	ids, err := s.turnsFrom(from)
	if err != nil {
		return err
	}
	for i := len(ids) - 1; i >= 0; i-- {
		var cursor *string
		for {
			page, err := call[app.ItemsPage](s.ctx, s.srv.owner, "thread/items/list", app.ItemsListParams{ThreadID: s.id, TurnID: &ids[i], PageParams: app.PageParams{Cursor: cursor}})
			if err != nil {
				return err
			}
			for j := range page.Data {
				s.item(ids[i], &page.Data[j].Item, true)
			}
			if cursor = page.NextCursor; cursor == nil {
				break
			}
		}
		s.turn(ids[i]).over = i > 0
	}
	return nil
}

// turnsFrom lists turns, the newest first, down to one, which is included where it is
// known what of it was shown.
func (s *session) turnsFrom(last string) ([]string, error) {
	var out []string
	none := app.ItemsNotLoaded
	for p := (app.TurnsListParams{ThreadID: s.id, ItemsView: &none}); ; {
		page, err := call[app.TurnsPage](s.ctx, s.srv.owner, "thread/turns/list", p)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Data {
			if t.ID == last && s.turns[last] == nil {
				return out, nil
			}
			out = append(out, t.ID)
			if t.ID == last {
				return out, nil
			}
		}
		if page.NextCursor == nil {
			return out, nil
		}
		p.Cursor = page.NextCursor
	}
}

// joined shows a turn that runs: what is complete of it where the history is wanted, and
// what is in flight in any case.
func (s *session) joined(t *app.Turn, history bool) {
	mine := s.turn(t.ID)
	for i := range t.Items {
		it := &t.Items[i]
		switch {
		case it.Type == app.ItemUserMessage, it.CompletedAtMs != nil:
			if history {
				s.item(t.ID, it, true)
				continue
			}
			mine.item(it.ID).done = true
			mine.said = mine.said || it.Type == app.ItemUserMessage
		default:
			s.item(t.ID, it, false)
			s.grow(mine.item(it.ID), it)
		}
	}
}

func steps(list []app.Todo) []app.PlanStep {
	out := make([]app.PlanStep, 0, len(list))
	for _, t := range list {
		word := "pending"
		switch t.State {
		case "doing":
			word = "inProgress"
		case "done", "canceled":
			word = "completed"
		}
		out = append(out, app.PlanStep{Step: t.Content, Status: word})
	}
	return out
}

// title is what a list shows of a thread.
func title(t app.Thread) string {
	if t.Name != nil {
		return *t.Name
	}
	return oneLine(t.Preview, 80)
}

func stamp(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }
