package executord

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/unguarded"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// A turn that only plans changes nothing, whatever earlier ones prepared: a program that
// they left running in the other box would write for it, and so would a second name, among
// the conversations, of a file of the workspace.

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
	for _, w := range b.by { // the other too: it may hold files open that have a second name
		w.Close()
	}
	clear(b.by)
	return nil
}

// part gives the files of the conversations no other names. Nothing runs meanwhile.
func part(ctx context.Context, dir string) error {
	if unguarded.Build {
		return nil
	}
	at, err := beneath.Trusted(dir)
	if err != nil {
		return err
	}
	defer at.Close()
	return at.Part(ctx)
}
