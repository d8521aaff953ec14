package executord

import (
	"errors"
	"fmt"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/sandbox/repository"
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
	b.verdict.Lock() // no turn ends before its reason is known
	defer b.verdict.Unlock()
	paths, missing := lost(w.Box, w.guards)
	if errors.Is(missing, box.ErrGone) {
		missing = nil // it ends for another reason
	}
	traps, err := b.cfg.Place.Traps(w.guards)
	if len(traps) == 0 && err == nil && missing == nil {
		return false
	}
	h := hit{at: time.Now(), ended: true, error: thole.TurnError{Code: thole.ErrLimit}}
	for _, in := range b.all() {
		_ = in.Close()
	}
	// What ran on until its box was closed may have set another one since.
	later, unread := b.cfg.Place.Traps(w.guards)
	traps = append(traps, later...)
	switch {
	case len(traps) > 0:
		h.error.Message = fmt.Sprintf("%s %s while the agent could write there; the agent was ended", traps[0].Path, traps[0].What)
		h.error.Hint = "if neither you nor the agent at your request did that, do not trust what else was done here"
	case errors.Join(err, unread) != nil:
		h.error.Message, h.error.Hint = "the repository's index cannot be read any more; the agent was ended", "git read-tree HEAD makes another one"
	default:
		h.error.Message, h.error.Hint = "the repository's configuration was changed from outside while the agent could write there; the agent was ended", "send the message again"
		h.again = goesOn(w.guards, paths)
	}
	b.note(h)
	for _, t := range traps {
		_ = t.Disarm() // what is gone already the sentinel of another thread has disarmed
	}
	return true
}

// maxChanged is how many entries of a configuration are named.
const maxChanged = 5

// goesOn says why turns go on in another box, "" if they do not: what is guarded no longer is
// configuration, and makes git run nothing.
func goesOn(g *repository.Guards, paths []string) string {
	var all []string
	for _, path := range paths {
		names, ok := g.Changed(path)
		if !ok {
			return ""
		}
		all = append(all, names...)
	}
	what := "rewritten"
	if more := len(all) - maxChanged; more > 0 {
		all = append(all[:maxChanged], fmt.Sprintf("and %d more", more))
	}
	if len(all) > 0 {
		what = "changed (" + strings.Join(all, ", ") + ")"
	}
	return "the repository's configuration was " + what + " from outside; taking the turn up again in a new box"
}
