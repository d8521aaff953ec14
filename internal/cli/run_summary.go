package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/changes"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/protocol/app"
)

// ran says how the turn of a run ended, what it took and changed, and what to do next; to
// scripts in one line.
func (e *Env) ran(ctx context.Context, v app.ThreadView, began time.Time, err error) error {
	took := time.Since(began)
	code := exitCode(err)
	if !e.JSON {
		if ctx.Err() != nil || code == exitHuman || code == exitBusy { // the turn goes on, and the error says how
			return err
		}
		if err != nil {
			printError(e, err)
			err = ExitError(code)
		}
		if e.Quiet {
			return err
		}
		c := e.changed(ctx, v.Thread.ID)
		e.printSummary(e.Out, code, took, e.spentBy(ctx, v.Thread.ID), c)
		total := -1
		if c != nil {
			total = c.Total
		}
		e.printNext(e.Out, v, total)
		return err
	}
	outcome := app.TurnCompleted
	switch code {
	case exitDone:
	case exitConflict:
		outcome = app.TurnInterrupted
	case exitInterrupted, exitHuman, exitBusy: // the waiting ended, not the turn
		outcome = "running"
	default:
		outcome = app.TurnFailed
	}
	_ = writeJSON(e.Out, map[string]any{"ran": map[string]any{"thread_id": v.Thread.ID, "outcome": outcome, "cwd": v.Cwd, "source": v.Files}})
	return err
}

// changed is what a thread has changed, nil where that is not known.
func (e *Env) changed(ctx context.Context, id string) *view.Changes {
	var c view.Changes
	if err := e.ask(ctx, changes.MethodDiff, changes.DiffParams{Thread: thole.ThreadID(id)}, &c); err != nil {
		return nil
	}
	return &c
}

// spentBy is what a thread's newest turn used, nil where that is not known.
func (e *Env) spentBy(ctx context.Context, id string) *view.Usage {
	var spent executors.TurnsResult
	if err := e.ask(ctx, executors.MethodTurns, executors.TurnsParams{Thread: thole.ThreadID(id), Limit: 1}, &spent); err != nil || len(spent.Turns) == 0 {
		return nil
	}
	return &spent.Turns[0].Usage
}

// listedFiles is how many changed files a summary names.
const listedFiles = 8

// printSummary is one line of what a turn took, and the files that are changed now.
func (e *Env) printSummary(w io.Writer, code int, took time.Duration, u *view.Usage, c *view.Changes) {
	word, colour := "done in", green
	switch code {
	case exitDone:
	case exitConflict:
		word, colour = "stopped after", yellow
	default:
		word, colour = "failed after", red
	}
	parts := []string{word + " " + shortTime(took)}
	parts = append(parts, spentText(u)...)
	if c != nil {
		parts = append(parts, changedText(c))
	}
	putln(w)
	e.paint(w, colour, func(w io.Writer) { put(w, strings.Join(parts, " · ")) })
	putln(w)
	if c == nil {
		return
	}
	room := e.width(w)
	for i, f := range c.Files {
		if i == listedFiles {
			putf(w, "  … and %d more\n", c.Total-listedFiles)
			break
		}
		lines := fmt.Sprintf("+%d -%d", f.Added, f.Removed)
		if f.Binary {
			lines = "binary"
		}
		name := fileName(f)
		if room > 0 {
			name = clip(name, room-len(lines)-5)
		}
		putf(w, "  %s  %s\n", name, lines)
	}
}

// spentText is tokens and money, none where nothing was counted.
func spentText(u *view.Usage) (parts []string) {
	if u == nil || u.Input+u.Output+u.CacheRead+u.CacheWrite == 0 {
		return nil
	}
	parts = append(parts, fmt.Sprintf("%d tokens in, %d out", u.Input+u.CacheRead+u.CacheWrite, u.Output))
	if u.CostMicros != nil {
		parts = append(parts, dollars(*u.CostMicros))
	}
	return parts
}

func changedText(c *view.Changes) string {
	if c.Total == 0 {
		return "no file changed"
	}
	return fmt.Sprintf("%s changed, +%d -%d", count(c.Total, "file"), c.Added, c.Removed)
}
