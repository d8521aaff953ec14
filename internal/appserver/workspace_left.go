package appserver

import (
	"context"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

// A Codex TUI lists in /ps the commands that it saw begin and not end, and asks nobody. In a
// thread's log a command is over at the latest with its turn, so TUIs hear of those that
// go on when the turn has ended: as commands that begin while no turn runs, which a TUI shows
// in its list only.

const (
	// leftEvery is how often an agent that left commands running is asked again.
	leftEvery = 3 * time.Second
	// leftTime bounds the wait for its answer.
	leftTime = 10 * time.Second
	// background is the source of a command that may outlive its turn.
	background = "unifiedExecStartup"
)

// lookLocked begins to report to a TUI what its thread's agent left running.
func (s *sub) lookLocked() {
	if s.conn.srv.cfg.Executors == nil || s.conn.client == nil || s.conn.client.info.Name != terminal {
		return
	}
	if s.looks {
		s.again = true
		return
	}
	s.looks = true
	s.conn.pumps.Go(s.reportLeft)
}

// reportLeft asks until nothing is left, or another turn begins.
func (s *sub) reportLeft() {
	ctx, cancel := context.WithCancel(authz.Doing(context.Background(), ActionOf("thread/backgroundTerminals/list")))
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-s.conn.stop:
		case <-ctx.Done():
		}
	}()
	for s.reportOnce(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(leftEvery):
		}
	}
}

// reportOnce asks once and reports whether there is a point in asking again.
func (s *sub) reportOnce(ctx context.Context) bool {
	c := s.conn
	ctx, cancel := context.WithTimeout(ctx, leftTime)
	defer cancel()
	has, err := c.srv.background(ctx, c, string(s.thread), wire.BackgroundRequest{})
	var last thole.TurnID
	idle := false
	if err == nil {
		page, failed := c.srv.cfg.Threads.Turns(ctx, c.who(), s.thread, thread.PageParams{Desc: true, Limit: 1})
		if err = failed; err == nil && len(page.Items) > 0 {
			last, idle = page.Items[0].ID, page.Items[0].Outcome != ""
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	current := s.currentLocked()
	idle = idle && s.open == "" // the store may know of an end that the client does not
	if err == nil && idle && current {
		current = c.sendLocked(pick(c.client, s.changedLocked(last, has.Commands)))
	}
	// The end of the next turn is another reason, and may have come meanwhile.
	s.looks, s.again = current && (s.again || err == nil && idle && len(s.left) > 0), false
	return s.looks
}

// changedLocked are the frames about what began or ended since the last ones.
func (s *sub) changedLocked(turn thole.TurnID, now []provider.BackgroundCommand) []*frame {
	at := thole.Millis(s.conn.srv.cfg.Now())
	var out []*frame
	runs := map[string]app.Item{}
	for _, b := range now {
		id := string(b.Item)
		if id == "" {
			id = background + "-" + b.ID
		}
		w := app.Item{
			Type: app.ItemCommandExecution, ID: id, StartedAtMs: &at, Command: new(argv(b.Line, "")), Cwd: new(b.Dir), Source: background,
			CommandActions: actions(b.Line, b.Dir), Status: app.ItemInProgress,
		}
		if _, known := s.left[id]; !known {
			out = append(out, note("item/started", at, app.ItemStarted{Item: w, ThreadID: string(s.thread), TurnID: string(turn), StartedAtMs: at}))
		}
		runs[id] = w
	}
	for id, w := range s.left {
		if _, still := runs[id]; !still {
			w.Status, w.CompletedAtMs = app.ItemCompleted, &at
			out = append(out, note("item/completed", at, app.ItemDone{Item: w, ThreadID: string(s.thread), TurnID: string(turn), CompletedAtMs: at}))
		}
	}
	s.left = runs
	return out
}
