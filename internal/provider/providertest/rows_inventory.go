package providertest

import (
	"context"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

func inventoryRows() []Row {
	return []Row{
		alone("an MCP server is called by the user", serves),
		together("inventory beside a turn and between turns", func(b *Bench) {
			s := b.Open()
			asked, ok := s.(provider.Inventoried)
			if !ok {
				b.Skip("the CLI does not say what it has")
			}
			ask := func() provider.Inventory {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				has, err := asked.Inventory(ctx)
				if err != nil {
					b.Fatal(err)
				}
				return has.Bounded()
			}
			t := b.Start(s, "sim: slow 50ms 5 ;; say "+strings.Repeat("again and ", 2000))
			t.UntilText("again and again")
			during := ask()
			t.Stop()
			b.outcome(t.Wait(), thole.OutcomeInterrupted)
			between := ask()
			if len(during.Skills) != len(between.Skills) || len(during.Servers) != len(between.Servers) || len(during.Hooks) != len(between.Hooks) {
				b.Errorf("during the turn %+v, after it %+v", during, between)
			}
			b.outcome(b.Play(s, "sim: say next"), thole.OutcomeCompleted) // nothing that belongs to it was lost
		}),
	}
}
