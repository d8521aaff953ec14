package store

import (
	"context"
	"database/sql"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/turntime"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/thread"
)

// spentRow is a turn's time in milliseconds.
type spentRow struct {
	Model    int64 `json:"model"`
	Tools    int64 `json:"tools"`
	Human    int64 `json:"human"`
	Overhead int64 `json:"overhead"`
}

func spentOf(column string) (*thole.TurnTime, error) {
	if column == "" {
		return nil, nil
	}
	var r spentRow
	err := fromJSON(column, &r)
	ms := time.Millisecond
	return &thole.TurnTime{
		Model: time.Duration(r.Model) * ms, Tools: time.Duration(r.Tools) * ms, Human: time.Duration(r.Human) * ms, Overhead: time.Duration(r.Overhead) * ms,
	}, err
}

// putSpent writes what is known of the time of turns that have their outcome.
func putSpent(tx *sqldb.Tx, id thole.ThreadID, c *thread.Commit) error {
	for turn, t := range c.Spent {
		row := spentRow{t.Model.Milliseconds(), t.Tools.Milliseconds(), t.Human.Milliseconds(), t.Overhead.Milliseconds()}
		if err := tx.Must("turn has its outcome", `update turns set spent = $3 where thread_id = $1 and turn_id = $2 and outcome <> ''`,
			id, turn, asJSON(row)); err != nil {
			return err
		}
	}
	return nil
}

// timelineKinds is turntime.Kinds as a list in SQL.
var timelineKinds = func() string {
	var names []string
	for _, k := range turntime.Kinds {
		names = append(names, "'"+string(k)+"'")
	}
	return strings.Join(names, ", ")
}()

// Timeline implements thread.Store.
func (s *Threads) Timeline(ctx context.Context, id thole.ThreadID, turn thole.TurnID) (events []event.Event, calls []turntime.Call, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) (err error) {
		events, err = sqldb.All(tx, scanEvent, selectEvents+` and turn_id = $2 and kind in (`+timelineKinds+`)
			and seq >= coalesce((select seq from turns where thread_id = $1 and turn_id = $2), 0) order by seq`, id, turn)
		if err != nil {
			return err
		}
		calls, err = sqldb.All(tx, scanTimedCall, `select started_at, ended_at, waited_ms from gateway_calls where turn_id = $1 and thread_id = $2`, turn, id)
		return err
	})
	return events, calls, err
}

func scanTimedCall(rows *sql.Rows) (c turntime.Call, err error) {
	var started, ended, waited int64
	err = rows.Scan(&started, &ended, &waited)
	c.Started, c.Waited = thole.FromMillis(started), time.Duration(waited)*time.Millisecond
	if ended > 0 {
		c.Ended = thole.FromMillis(ended)
	}
	return c, err
}
