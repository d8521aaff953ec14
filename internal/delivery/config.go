package delivery

import (
	"time"

	"github.com/tholehq/thole/internal/backoff"
)

// Limits are the machine's numbers. They are stored on batches and attempts when
// those are made, so that changing them changes nothing already under way.
type Limits struct {
	MaxJobs       int64         // per batch
	MaxBytes      int64         // inline bytes per batch; a larger single job travels alone
	WaitWindow    time.Duration // how long a batch collects after its first job
	MinInterval   time.Duration // between accepted deliveries to one thread
	Window        time.Duration // redelivery window of a batch, from the moment it is first
	ManualWindow  time.Duration // a human has at least this long for a held batch
	MaxAttempts   int64         // accepted attempts per batch
	AcceptTimeout time.Duration // accept_pending without proof is overdue after
	ArmTimeout    time.Duration // arm_pending must be settled within
	ArmLease      time.Duration
	Observation   time.Duration // an accepted turn is followed this long
	Cooldown      time.Duration // heartbeat: before the next attempt
	PauseDelay    time.Duration // heartbeat: armed until it may be paused; its period and the scheduler's delay
	PauseTime     time.Duration // from then until it must be
	PauseRetry    time.Duration // after that its binding is degraded
	RecoveryKeep  time.Duration // what was handed over is kept at least this long
	RetryMin      time.Duration // first pause after a failure before acceptance
	RetryMax      time.Duration
}

// DefaultLimits are the shipped numbers.
func DefaultLimits() Limits {
	return Limits{
		MaxJobs:       8,
		MaxBytes:      64 << 10,
		WaitWindow:    2 * time.Second,
		MinInterval:   30 * time.Second,
		Window:        72 * time.Hour,
		ManualWindow:  24 * time.Hour,
		MaxAttempts:   5,
		AcceptTimeout: 2 * time.Minute,
		ArmTimeout:    10 * time.Minute,
		ArmLease:      2 * time.Minute,
		Observation:   2 * time.Hour,
		Cooldown:      15 * time.Minute,
		PauseDelay:    90 * time.Second,
		PauseTime:     90 * time.Second,
		PauseRetry:    5 * time.Minute,
		RecoveryKeep:  72 * time.Hour,
		RetryMin:      2 * time.Second,
		RetryMax:      5 * time.Minute,
	}
}

// overdueInterval is how often an overdue call is reported.
func (l Limits) overdueInterval() time.Duration { return max(l.AcceptTimeout, l.Observation) }

// backoff is the pause after the n-th failure before acceptance (n from 1).
func (l Limits) backoff(n int64) time.Duration {
	return backoff.Policy{Min: l.RetryMin, Max: l.RetryMax}.After(int(n))
}
