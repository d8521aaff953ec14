package thread

import (
	"context"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/authz"
)

// Waiting is a pending ask with what its thread is known by.
type Waiting struct {
	Ask      fold.AskRecord
	Name     string
	Preview  string
	Provider string
	Archived bool
	Parent   thole.ThreadID // of a thread that another one's agent started
}

// WaitingQuery selects pending asks, exclusively following a position.
type WaitingQuery struct {
	Scope  authz.Scope
	At     time.Time // zero: from the start
	Thread thole.ThreadID
	Ask    thole.AskID
	Limit  int
}

// Waiting implements Service. Pages go forward only: what was answered meanwhile
// is gone from every page.
func (m *Machine) Waiting(ctx context.Context, actor thole.Actor, p PageParams) (Page[Waiting], error) {
	if !actor.Valid() {
		return Page[Waiting]{}, errNoActor()
	}
	scope, err := m.cfg.Access(ctx, actor, authz.ViewThread)
	if err != nil {
		return Page[Waiting]{}, failed("read rights", err)
	}
	limit := pageLimit(p.Limit)
	q := WaitingQuery{Scope: scope.Mine(actor), Limit: limit + 1}
	if p.Cursor != "" {
		if err := q.follow(p.Cursor); err != nil {
			return Page[Waiting]{}, err
		}
	}
	rows, err := m.store.Waiting(ctx, q)
	if err != nil {
		return Page[Waiting]{}, failed("list questions", err)
	}
	page := Page[Waiting]{Items: rows}
	if len(rows) > limit {
		page.Items = rows[:limit]
		page.Next = waitingCursor(rows[limit-1].Ask)
	}
	return page, nil
}

func waitingCursor(r fold.AskRecord) string {
	return encodeCursor(strconv.FormatInt(thole.Millis(r.Asked), 10) + "/" + string(r.Thread) + "/" + string(r.Ask.ID))
}

// follow sets the position from a cursor.
func (q *WaitingQuery) follow(cursor string) error {
	s, err := decodeCursor(cursor)
	if err != nil {
		return err
	}
	parts := strings.SplitN(s, "/", 3)
	if len(parts) < 3 || !thole.ValidUUID(parts[1]) {
		return errCursor(cursor)
	}
	ms, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || ms <= 0 {
		return errCursor(cursor)
	}
	q.At, q.Thread, q.Ask = thole.FromMillis(ms), thole.ThreadID(parts[1]), thole.AskID(parts[2])
	return nil
}
