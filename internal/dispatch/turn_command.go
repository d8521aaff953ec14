package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/thread"
)

// turnCommand fills in what to run for a command turn, or refuses it for good.
func (w *worker) turnCommand(ctx context.Context, e thole.TurnCommand, th fold.Thread, t fold.Turn, req *wire.RunRequest) error {
	if e == thole.TurnCommandShell || e == thole.TurnCommandSetup {
		if t.Run == 0 {
			return nil
		}
		// Nobody knows how far it got, and it is not ours to do it twice.
		begun, err := w.begun(ctx, begins)
		if err == nil && begun {
			err = thole.Errorf(thole.CodeGone, "the command was cut off: its executor was lost").WithHint("look at what it did, then run it again")
		}
		return err
	}
	caps := w.info.Capabilities
	switch {
	case !caps.Compact.OK():
		return thole.Errorf(thole.CodeUnsupported, "nothing was compacted: %s", caps.Notes["compact"])
	case req.Session.Resume == "":
		return thole.Errorf(thole.CodeInvalid, "nothing was compacted: the agent has heard nothing yet")
	}
	return nil
}

// Bounds of what the agent is sent about commands that the user ran.
const (
	maxHeard     = 20 // commands
	maxHeardText = 8 << 10
)

// heard is what the agent must know before it reads a turn's input: the commands
// that the user ran by hand since it was last spoken to. Agents have no common
// way to receive one when it happens, and none would act on it before the next
// message.
func (w *worker) heard(ctx context.Context, th fold.Thread, t fold.Turn) ([]thole.Input, error) {
	if p, ok := w.recall(th.ID); ok && p.spoken == t.Number-1 {
		return nil, nil // the turn right before was a message
	}
	var told []string
	before := thread.PageParams{Desc: true, Limit: 2} // nearly always it ends with the turn right before
	for seen := 0; t.Number > 1 && seen < maxHeard; {
		page, err := w.cfg.Threads.Turns(ctx, thole.SystemActor, th.ID, before)
		if err != nil {
			return nil, err
		}
		for _, b := range page.Items {
			command, line := thole.TurnCommandOf(b.Input)
			if b.Number < t.Number && command.AgentReads() {
				seen = maxHeard
				break
			}
			if command.AgentRuns() {
				continue
			}
			seen++
			items, err := w.cfg.Threads.Items(ctx, thole.SystemActor, th.ID, b.ID, thread.PageParams{Limit: 1})
			if err != nil {
				return nil, err
			}
			if len(items.Items) == 0 {
				continue
			}
			switch it := items.Items[0].Item; {
			case command == thole.TurnCommandUndo && b.Outcome == thole.OutcomeCompleted:
				told = append(told, "(undo) "+it.Text)
			case it.Command != nil:
				told = append(told, account(cmp.Or(line, it.Command.Line), *it.Command))
			}
		}
		if before.Cursor = page.Next; before.Cursor == "" {
			break
		}
	}
	if len(told) == 0 {
		return nil, nil
	}
	slices.Reverse(told)
	return thole.Text("Before this message the user ran in the workspace, by hand:\n\n" + strings.Join(told, "\n\n") + "\n\n"), nil
}

func account(line string, c event.Command) string {
	end := "it was stopped"
	if c.ExitCode != nil {
		end = fmt.Sprintf("exit code %d", *c.ExitCode)
	}
	out := strings.TrimRight(c.Output, "\n")
	if len(out) > maxHeardText {
		out = "…" + strings.ToValidUTF8(out[len(out)-maxHeardText:], "")
	}
	return "$ " + line + "\n" + out + "\n(" + end + ")"
}
