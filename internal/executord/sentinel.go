package executord

import (
	"errors"
	"fmt"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/unguarded"
)

// sentinel ends all boxes when something is done to a person's repository that no mount
// prevents: an agent sets a trap, or the person's own git replaces a guarded file, and with
// it goes what was mounted there. Traps are disarmed before anything runs again.
func (b *boxes) sentinel(w *walled) error {
	if w.guards == nil || unguarded.Build {
		return nil
	}
	over := false // one at a time looks
	look := func() {
		if !over {
			over = b.seized(w)
		}
	}
	stop, err := w.guards.Watch(look)
	if err != nil {
		return err
	}
	b.sentinels.Go(func() {
		<-w.Done()
		stop()
		look() // what was done last
	})
	return nil
}

// seized reports whether that happened, and has ended the boxes and disarmed the traps
// then.
func (b *boxes) seized(w *walled) bool {
	lost := hold(w.Box, w.guards)
	if errors.Is(lost, box.ErrGone) {
		lost = nil // it ends for another reason
	}
	traps, err := b.cfg.Place.Traps(w.guards)
	e := thole.TurnError{Code: thole.ErrLimit}
	switch {
	case len(traps) > 0:
		e.Message = fmt.Sprintf("%s %s while the agent could write there; the agent was ended", traps[0].Path, traps[0].What)
		e.Hint = "if neither you nor the agent at your request did that, do not trust what else was done here"
	case err != nil:
		e.Message, e.Hint = "the repository's index cannot be read any more; the agent was ended", "git read-tree HEAD makes another one"
	case lost != nil:
		e.Message, e.Hint = "the repository's configuration was changed from outside while the agent could write there; the agent was ended", "send the message again"
	default:
		return false
	}
	b.note(hit{at: time.Now(), ended: true, error: e})
	for _, in := range b.all() {
		_ = in.Close()
	}
	// What ran on until its box was closed may have set another one since.
	later, _ := b.cfg.Place.Traps(w.guards)
	for _, t := range append(traps, later...) {
		_ = t.Disarm() // what is gone already the sentinel of another thread has disarmed
	}
	return true
}
