package cli

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/threads"
)

func newPS(env *Env) *cobra.Command {
	var watch, all, here bool
	var every time.Duration
	var limit int
	cmd := &cobra.Command{
		Use: "ps", Short: "Show what threads do now", Args: cobra.NoArgs,
		Long:    "Lists the threads whose turn is not over: running, or waiting for a human. --all adds those that rest, --watch shows changes.",
		Example: "  thole ps --all\n  thole ps --watch --here",
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := threads.FindParams{Active: !all, Limit: limit}
			if here {
				if p.Within = repositoryTop(""); p.Within == "" {
					return thole.Errorf(thole.CodeInvalid, "you are in no git repository").WithHint("leave --here out")
				}
			}
			if watch {
				return env.watch(cmd.Context(), every, p)
			}
			list, err := env.find(cmd.Context(), p)
			if err != nil {
				return err
			}
			return env.print(list, func(w io.Writer) { env.printPS(w, list, p.Active) })
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show it again and again, until Ctrl-C")
	cmd.Flags().DurationVar(&every, "every", 2*time.Second, "how often to look")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "threads that rest, too")
	cmd.Flags().BoolVar(&here, "here", false, "only threads of the repository you are in")
	cmd.Flags().IntVar(&limit, "limit", 50, "at most this many")
	return cmd
}

func (e *Env) find(ctx context.Context, p threads.FindParams) ([]threads.Thread, error) {
	var found threads.Found
	err := e.ask(ctx, threads.MethodFind, p, &found)
	return found.Threads, err
}

// watch shows a list again and again: on a terminal in place, elsewhere one after another, and
// with --json a line each time.
func (e *Env) watch(ctx context.Context, every time.Duration, p threads.FindParams) error {
	tick := time.NewTicker(max(every, 100*time.Millisecond))
	defer tick.Stop()
	tty := ttyOf(e.rawOut)
	for {
		list, err := e.find(ctx, p)
		if err != nil {
			if errors.Is(err, context.Canceled) || ctx.Err() != nil {
				return nil
			}
			return err
		}
		if tty != nil && !e.JSON {
			control(tty, "\x1b[H\x1b[2J\x1b[3J")
			putf(e.Out, "%s · every %s · Ctrl-C ends\n\n", time.Now().Format(time.TimeOnly), every)
		}
		if err := e.print(list, func(w io.Writer) { e.printPS(w, list, p.Active) }); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil // that is how one leaves
		}
	}
}

func (e *Env) printPS(w io.Writer, list []threads.Thread, active bool) {
	if len(list) == 0 {
		if active {
			putln(w, "no turn is running; thole ps --all lists threads that rest")
		} else {
			putln(w, `no threads yet; thole run "…" starts one`)
		}
		return
	}
	e.printThreadTable(w, list, time.Now())
	for _, t := range list {
		if t.Status == threads.StatusWaiting {
			putln(w)
			putln(w, "answer what waits with:", e.program("inbox"))
			return
		}
	}
}

// printThreadTable lists threads by id, status, age and title, fitted to the width.
func (e *Env) printThreadTable(w io.Writer, list []threads.Thread, now time.Time) {
	short := shortIDs(list)
	idW, agentW := 2, 5
	for i, t := range list {
		idW, agentW = max(idW, len(short[i])), max(agentW, len(t.Provider))
	}
	agentW = min(agentW, 12)
	room := e.width(w)
	if room == 0 {
		room = 120
	}
	narrow := room < 60
	e.paint(w, dim, func(w io.Writer) {
		if narrow {
			putf(w, "%-*s  %-7s  %s\n", idW, "ID", "STATUS", "TITLE")
		} else {
			putf(w, "%-*s  %-7s  %5s  %-*s  %s\n", idW, "ID", "STATUS", "AGE", agentW, "AGENT", "TITLE")
		}
	})
	for i, t := range list {
		since := t.Updated
		if t.Since != nil {
			since = *t.Since
		}
		putf(w, "%-*s  ", idW, short[i])
		e.paint(w, statusColour(t.Status), func(w io.Writer) { putf(w, "%-7s", t.Status) })
		used := idW + 2 + 7 + 2
		if !narrow {
			putf(w, "  %5s  %-*s", age(now.Sub(since)), agentW, clip(t.Provider, agentW))
			used += 7 + agentW + 2
		}
		title := t.Title
		if title == "" {
			title = "(no message yet)"
		}
		putf(w, "  %s\n", clip(title, max(room-used-1, 8)))
	}
}

func statusColour(s string) string {
	switch s {
	case threads.StatusRunning:
		return cyan
	case threads.StatusWaiting:
		return yellow
	case threads.StatusFailed:
		return red
	}
	return dim
}

// age is a duration in one unit.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "now"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + "h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + "d"
}
