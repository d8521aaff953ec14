package delivery

import (
	"time"

	thole "github.com/tholehq/thole"
)

// step is the one thing a lane must do next.
type step struct {
	kind   stepKind
	until  time.Time         // stepWait
	reason thole.CloseReason // stepClose
}

type stepKind int

const (
	stepRest        stepKind = iota // nothing until someone acts on the lane
	stepWait                        // nothing before a time
	stepReady                       // take a place in the fair order
	stepMaterialize                 // the first batch stops collecting
	stepClose                       // the first batch will never be sent again
)

// decide is the scheduler: a pure function of a lane, its first open batch, its
// open attempt and the time. Callers apply the step and ask again until it rests,
// waits or is ready, so a lane is always left where time alone can move it on.
func decide(lane *Lane, head *Batch, open *Attempt, now time.Time, l Limits) step {
	if head == nil || open.Tracked() {
		return step{}
	}
	if head.State == thole.BatchQueued {
		// Before Blocked and the interval: a batch that never becomes material
		// would have no window and could block its thread for ever.
		if until := collectsUntil(head, l); now.Before(until) {
			return step{kind: stepWait, until: until}
		}
		return step{kind: stepMaterialize}
	}
	if !now.Before(head.WindowEndsAt) {
		if head.Replay == thole.ReplayManual {
			return step{kind: stepClose, reason: thole.CloseManualExpired}
		}
		return step{kind: stepClose, reason: thole.CloseWindowExhausted}
	}
	if head.Replay == thole.ReplayManual {
		return step{}
	}
	if open != nil && open.State == thole.AttemptCooldown && now.Before(open.CooldownUntil) {
		return step{kind: stepWait, until: open.CooldownUntil}
	}
	if head.AttemptCount >= head.MaxAttempts {
		return step{kind: stepClose, reason: thole.CloseMaxAttempts}
	}
	if lane.Blocked != "" {
		return step{}
	}
	if until := later(lane.EligibleAfter, lane.NotBefore); now.Before(until) {
		return step{kind: stepWait, until: until}
	}
	return step{kind: stepReady}
}

// collectsUntil is when a queued batch stops taking jobs.
func collectsUntil(b *Batch, l Limits) time.Time {
	if b.Jobs >= l.MaxJobs || b.InlineBytes >= l.MaxBytes {
		return time.Time{}
	}
	return b.FirstReadyAt.Add(l.WaitWindow)
}

// joins reports whether a job that became ready at readyAt may enter the batch. One that is
// first collects for its window; one after another has nothing to wait for but its turn,
// and collects until then.
func joins(b *Batch, first bool, j *Job, bytes int64, readyAt time.Time, l Limits) bool {
	return b != nil && b.State == thole.BatchQueued && b.Target == j.Target && b.Plugin.Shares(j.Plugin) && b.ReleasedBy == "" && // which is a person's word for what was in it
		(!first || readyAt.Before(b.FirstReadyAt.Add(l.WaitWindow))) &&
		b.Jobs < l.MaxJobs && b.InlineBytes+bytes <= l.MaxBytes
}

// modeOf is the channel a target is reached by unless a caller says otherwise.
func modeOf(t thole.Target) thole.DeliveryMode {
	if t == thole.TargetDesktop {
		return thole.ModeHeartbeat
	}
	return thole.ModeTurnStart
}

// clampAhead keeps a deadline within its own length from now: a clock that went
// back must not turn minutes into days.
func clampAhead(t, now time.Time, length time.Duration) time.Time {
	if limit := now.Add(length); t.After(limit) {
		return limit
	}
	return t
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
