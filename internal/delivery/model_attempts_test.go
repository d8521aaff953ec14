package delivery_test

import (
	"fmt"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
)

// fence is the newest of a lane, or sometimes an outdated or damaged one.
func (p *player) fence(lane string) (f delivery.Fence, good bool) {
	f, good = p.fences[lane]
	switch p.pick(6) {
	case 0:
		if len(p.old) > 0 {
			return p.old[p.pick(len(p.old))], false
		}
	case 1:
		f.Generation++
		return f, false
	case 2:
		f.Request = "another"
		return f, false
	}
	return f, good
}

func (p *player) remember(lane string, a delivery.Attempt) {
	if f, ok := p.fences[lane]; ok {
		p.old = append(p.old, f)
	}
	p.fences[lane] = a.Fence()
}

// stepBegin takes a ready head through the barrier, or is refused.
func (p *player) stepBegin() string {
	lane := p.lane()
	l := p.m.lanes[lane]
	if l == nil || l.head() == nil {
		return "-"
	}
	v := p.head(lane)
	// Between two sweeps the fair order may lag behind time: the machine asks again.
	legal := l.ready && p.m.sendable(l)
	var parcel delivery.Parcel
	request := p.id()
	lost, err := p.call(func() (err error) {
		if l.desktop {
			parcel, err = p.Prepare(ctx, actor, v.Lane.ID, v.Batch.ID)
			return err
		}
		parcel, err = p.BeginAccept(ctx, actor, delivery.BeginAccept{
			LaneID: v.Lane.ID, Batch: v.Batch.ID, Kind: thole.ModeTurnStart, Request: request, Marker: "m", Holder: "h", Lease: time.Minute, Epoch: 1,
		})
		return err
	})
	if lost { // the successor finds it stored
		attempts := p.head(lane).Attempts
		parcel.Attempt = attempts[len(attempts)-1]
	}
	if legal != (err == nil) {
		p.rt.Fatalf("begin %s: %v, want %v", lane, err, legal)
	}
	if legal {
		p.m.prepare(l)
		if !l.desktop {
			l.open.state, l.open.deadline = thole.AttemptAcceptPending, p.m.now.Add(p.m.l.AcceptTimeout)
		}
		p.m.rest(l)
		p.remember(lane, parcel.Attempt)
	}
	return fmt.Sprintf("begin %s %v", lane, legal)
}

func (p *player) stepSettle() string {
	lane := p.lane()
	f, good := p.fence(lane)
	l := p.m.lanes[lane]
	good = good && l.open != nil && l.open.state == thole.AttemptAcceptPending
	kind := p.pick(5)
	var stale bool
	lost, err := p.call(func() (err error) {
		switch kind {
		case 0:
			stale, err = p.Accept(ctx, actor, f, delivery.Acceptance{Turn: "turn", Epoch: 1})
		case 1:
			stale, err = p.Reject(ctx, actor, f, "busy", 0)
		case 2:
			stale, err = p.Unsettled(ctx, actor, f, "silence")
		case 4:
			stale, err = p.Refuse(ctx, actor, f, "no such program", thole.HoldNoServer)
		default:
			stale, err = p.Unknown(ctx, actor, f, "gone")
		}
		return err
	})
	p.ok(err)
	switch kind {
	case 0:
		if good {
			p.m.counted(l)
		} else if l != nil && !l.desktop && f == p.fences[lane] && l.open != nil && l.open.state == thole.AttemptCooldown {
			good = true // the same acceptance again
		}
	case 1:
		if good {
			l.open.state = thole.AttemptPrepared
			p.m.setback(l)
			p.m.rest(l)
		}
	case 3:
		if good {
			l.open.doubt = true
			p.m.hold(l, l.open.batch)
			p.m.rest(l)
		}
	case 4: // nothing of it was sent
		if good {
			p.m.hold(l, l.open.batch)
			p.m.rest(l)
		}
	}
	if !lost && stale == good {
		p.rt.Fatalf("settle %d of %s: stale=%v, want %v", kind, lane, stale, !good)
	}
	return fmt.Sprintf("settle %s %d %v", lane, kind, good)
}

func (p *player) stepObserve() string {
	lane := p.lane()
	f, good := p.fence(lane)
	// The request does not fence observations: the fence of a call that was rejected
	// names the same attempt, of whichever lane.
	for name, now := range p.fences {
		if now.Request = f.Request; now == f {
			lane, f = name, p.fences[name]
		}
	}
	l := p.m.lanes[lane]
	events := []thole.TurnEvent{thole.TurnEventStarted, thole.TurnEventCompleted, thole.TurnEventFailed, thole.TurnEventReplaced}
	e := events[p.pick(4)]
	epoch := int64(1)
	if p.pick(5) == 0 {
		epoch = 2
	}
	same := f == p.fences[lane]
	good = (good || same) && l != nil && l.open != nil && l.open.gen == f.Generation && l.open.state == thole.AttemptCooldown && !l.desktop
	if p.pick(6) == 0 {
		var stale bool
		lost, err := p.call(func() (err error) { stale, err = p.Lost(ctx, actor, f, "cut"); return err })
		p.ok(err)
		if !lost && stale == good {
			p.rt.Fatalf("lost: stale=%v, want %v", stale, !good)
		}
		if good {
			p.m.hold(l, l.open.batch)
			p.m.rest(l)
		}
		return "lost " + lane
	}
	var stale bool
	lost, err := p.call(func() (err error) {
		stale, err = p.Observe(ctx, actor, f, delivery.Sighting{Turn: "turn", Epoch: epoch, Event: e})
		return err
	})
	p.ok(err)
	good = good && epoch == 1 && !p.m.now.After(l.open.deadline)
	if !lost && stale == good {
		p.rt.Fatalf("observe %s: stale=%v, want %v", e, stale, !good)
	}
	if good && e == thole.TurnEventCompleted {
		p.m.close(l, l.open.batch, thole.CloseDelivered)
		p.m.rest(l)
	} else if good && e.Terminal() {
		p.m.hold(l, l.open.batch)
		p.m.rest(l)
	} else if good {
		p.m.rest(l)
	}
	return fmt.Sprintf("observe %s %s %v", lane, e, good)
}
