package turnstart_test

import (
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
)

// show is what a lens makes of one read of a turn.
type show func(turn map[string]any)

func as(status string, completed any) show {
	return func(turn map[string]any) {
		turn["status"], turn["completedAt"], turn["durationMs"] = status, completed, completed
	}
}

// reads shows the newest turn of the history, read by read, as listed, and the
// truth afterwards. Ends of the untold thread are not announced.
func reads(untold string, list ...show) func(string, map[string]any) bool {
	n := 0
	return func(method string, body map[string]any) bool {
		if method == "thread/turns/list" {
			if all := turnsIn(body); len(all) > 0 && n < len(list) {
				list[n](all[0])
				n++
			}
		}
		return untold == "" || method != "turn/completed" || body["threadId"] != untold
	}
}

// A running turn that a server calls interrupted, failed or ended without saying
// when is running, and so is one that a single read calls over.
func TestOneReadIsNoEnd(t *testing.T) {
	t.Parallel()
	c := newCodex(t)
	for name, list := range map[string][]show{
		"interrupted without times":   {as("interrupted", nil), as("interrupted", nil), as("interrupted", nil)},
		"failed without times":        {as("failed", nil), as("failed", nil)},
		"replaced without times":      {as("replaced", nil), as("replaced", nil)},
		"completed without times":     {as("completed", nil)},
		"one timed read":              {as("interrupted", 7)},
		"timed reads that differ":     {as("interrupted", 7), as("interrupted", 8), as("failed", 8)},
		"a timed read and one of now": {as("interrupted", 7), as("inProgress", nil), as("interrupted", 7)},
		"a word that nobody knows":    {as("vanished", 7), as("vanished", 7)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each has a thread of its own
			l := newLens(t, c.sock, reads("", list...))
			r := c.rigOn(t, c.join(), newStore(t), nil)
			r.through(l.addr())
			r.deliver()
			r.job("sim: wait 2s ;; say got it")
			r.delivered(t)
		})
	}
}

// A negative end that is not announced is believed when two reads with times agree.
func TestTwoTimedReadsAreAnEnd(t *testing.T) {
	t.Parallel()
	c := newCodex(t)
	r := c.rigOn(t, c.join(), newStore(t), nil)
	l := newLens(t, c.sock, reads(r.thread))
	r.through(l.addr())
	r.deliver()
	r.job("sim: say before ;; hang")
	r.asked("hang")
	v := r.until(func(v delivery.BatchView) bool { return v.Batch.AttemptCount == 1 || settled(v) })
	full, err := r.run.Inspect(bg, me, v.Batch.ID)
	if err != nil {
		t.Fatal(err)
	}
	r.must("turn/interrupt", map[string]any{"turnId": string(full.Attempts[0].Observation.Turn)}, nil)
	if v := r.until(settled); v.Batch.HeldFor != thole.HoldTurnInterrupted || !strings.Contains(r.story(), "two reads") {
		t.Fatalf("held for %q\n%s", v.Batch.HeldFor, r.story())
	}
}

// An announced end is believed whatever the history says of it, and for how long.
func TestAnnouncedEndIsBelieved(t *testing.T) {
	t.Parallel()
	c := newCodex(t)
	l := newLens(t, c.sock, func(method string, body map[string]any) bool {
		if method == "thread/turns/list" {
			for _, turn := range turnsIn(body) {
				as("interrupted", nil)(turn)
			}
		}
		return true
	})
	r := c.rigOn(t, c.join(), newStore(t), nil)
	r.through(l.addr())
	r.deliver()
	r.job("sim: wait 1s ;; say got it")
	r.delivered(t)
}
