package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tholehq/thole/internal/daemon/wire"
)

// driftEvery is how often a running terminal's session is looked at.
const driftEvery = 2 * time.Second

// warnDrift writes that a session's permissions are not what they were when it was
// first seen: which way, in what, and what a delivery would get.
func warnDrift(w io.Writer, s wire.CodexSession) {
	show := func(p *wire.Permissions) string {
		if p == nil {
			return "unknown"
		}
		return fmt.Sprintf("approval %v, network %v, write %v", p.Approval, p.Network, p.Write)
	}
	putf(w, "thole: warning: the permissions of session %s changed: %s (startup: %s; current: %s; effective: %s)\n",
		s.ID, s.Drift, show(s.Startup), show(s.Current), show(s.Effective))
}

// watchDrift warns of each drift while the terminal runs. It does nothing when
// the error stream is the screen that the terminal draws on: a line there would
// damage it, and is written when the terminal has ended.
func (e *Env) watchDrift(ctx context.Context, s wire.CodexSession) {
	if sameFile(e.rawOut, e.rawErr) {
		return
	}
	t := time.NewTicker(driftEvery)
	defer t.Stop()
	for last := s.Drift; ; {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		var all []wire.CodexSession
		if e.ask(ctx, wire.SessionList, wire.SessionListParams{}, &all) != nil {
			continue
		}
		for _, now := range all {
			if now.ID == s.ID && now.Drift != last {
				if last = now.Drift; last != "" {
					warnDrift(e.Err, now)
				}
			}
		}
	}
}

func sameFile(a, b io.Writer) bool {
	x, ok := a.(*os.File)
	y, ok2 := b.(*os.File)
	if !ok || !ok2 {
		return false
	}
	i, err := x.Stat()
	j, err2 := y.Stat()
	return err == nil && err2 == nil && os.SameFile(i, j)
}
