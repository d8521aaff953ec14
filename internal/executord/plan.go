package executord

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/unguarded"
)

// A turn that only plans changes nothing, whatever earlier ones prepared: a program that
// they left running in the other box would write for it.

// still ends the boxes if anything may have run in the one that writes since the one that
// plans was made. Nobody is thrown out of a terminal, and no job is cut off.
func (b *boxes) still(attended, working bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by[false] == nil || unguarded.Build {
		return nil
	}
	if attended {
		return thole.Errorf(thole.CodeConflict, "a terminal is open in this executor, and what runs there can write in the workspace: %w", provider.ErrUnsupported).
			WithHint("close the terminal and send the message again, or choose another profile than plan")
	}
	if working {
		return thole.Errorf(thole.CodeConflict, "a job runs in this executor, and its command can write in the workspace: %w", provider.ErrUnsupported).
			WithHint("wait for the job (thole job list --status running) or cancel it, or choose another profile than plan")
	}
	for _, w := range b.by { // the other too: it may have been handed files that are open for writing
		w.Close()
	}
	clear(b.by)
	return nil
}
