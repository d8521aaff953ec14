package delivery_test

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
)

// blind goes on without the model, which knows no clock that goes back: whatever
// is called with whatever success, the rules must hold and everything must end.
func (p *player) blind() string {
	lane := p.lane()
	f := p.fences[lane]
	switch p.pick(9) {
	case 0:
		p.jobIDs = append(p.jobIDs, p.submit(lane, targetOf(lane)))
	case 1:
		if id, ok := p.someJob(); ok {
			_, _ = p.Finish(ctx, actor, delivery.Finish{Job: id, State: thole.JobReady, Request: p.id(), Inline: "x"})
		}
	case 2, 3:
		cs, err := p.Candidates(ctx, thole.TargetCLI, 1)
		p.ok(err)
		if len(cs) > 0 {
			parcel, err := p.BeginAccept(ctx, actor, delivery.BeginAccept{
				LaneID: cs[0].Lane.ID, Batch: cs[0].Batch.ID, Kind: thole.ModeTurnStart, Request: p.id(), Marker: "m", Epoch: 1,
			})
			if err == nil {
				p.remember(string(cs[0].Lane.Thread), parcel.Attempt)
			}
		}
	case 4:
		_, err := p.Accept(ctx, actor, f, delivery.Acceptance{Turn: "turn", Epoch: 1})
		p.ok(err)
	case 5:
		_, err := p.Observe(ctx, actor, f, delivery.Sighting{Turn: "turn", Epoch: 1, Event: thole.TurnEventCompleted})
		p.ok(err)
	case 6:
		_, err := p.Reject(ctx, actor, f, "busy", 0)
		p.ok(err)
	case 7:
		d := jumps[p.pick(len(jumps))]
		if p.pick(3) == 0 {
			d = -d
		}
		p.c.add(d)
	default:
		_, err := p.Sweep(ctx)
		p.ok(err)
	}
	return "blind"
}
