package providertest

import (
	"context"
	"errors"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

func compactRows() []Row {
	return []Row{
		alone("compaction on request", func(b *Bench) {
			s := b.Open()
			for range 3 { // a single exchange is too little for some
				b.outcome(b.Play(s, "sim: say one of several answers"), thole.OutcomeCompleted)
			}
			turn := provider.Turn{ID: thole.NewID[thole.TurnID](time.Now()), Input: thole.Compact()}
			if b.degraded("compact", b.Info.Capabilities.Compact) {
				if err := s.Run(context.Background(), turn, func(event.Event) {}); !errors.Is(err, provider.ErrUnsupported) {
					b.Errorf("a compaction that is not supported: %v", err)
				}
				return
			}
			r := b.StartTurn(s, turn).Wait()
			b.outcome(r, thole.OutcomeCompleted)
			if n := len(r.Items(event.ItemCompaction)); n != 1 {
				b.Errorf("%d compactions; events:\n%s", n, r)
			}
			if r.Text() != "" {
				b.Errorf("a compaction says %q", r.Text())
			}
			if r = b.Play(s, "sim: say after it"); r.Text() != "after it" {
				b.Errorf("the next turn says %q", r.Text())
			}
		}),
	}
}
