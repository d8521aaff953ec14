package channeltest

import (
	"context"
	"errors"
	"slices"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// Receiver is the other end of a channel as the conformance suite drives it: one
// idle thread without a delivery in it.
type Receiver struct {
	Channel channel.Channel
	Query   channel.Query
	// Attachment is the thread's stream, in its first epoch.
	Attachment thole.AttachmentID
	// Short is the text of a turn that runs for a second and completes, Long that of
	// one that runs until Interrupt ends it.
	Short, Long string
	Interrupt   func(thole.TurnID)
	// Occupy starts a user's turn that runs until Interrupt ends it.
	Occupy func() thole.TurnID
	// Glitch makes the next read of a turn show it as interrupted.
	Glitch func()
	// Impostor puts another process at the receiver's address and returns the number of
	// calls that it got. Nil: the receiver is in this process and has no address.
	Impostor func() (calls func() int)
	// Deliveries is how many messages of deliveries the thread has.
	Deliveries func() int
}

// Conform is the contract of package channel as a suite. Every channel passes it.
func Conform(t *testing.T, fresh func(t *testing.T) *Receiver) {
	for name, check := range map[string]func(*subject){
		"a result is one turn":                (*subject).once,
		"one read is no verdict":              (*subject).glitch,
		"an interruption is reported":         (*subject).interrupted,
		"a lost answer is found":              (*subject).lostAnswer,
		"what was never sent is rejected":     (*subject).neverSent,
		"a busy thread gets nothing":          (*subject).busy,
		"another epoch gets nothing":          (*subject).otherEpoch,
		"a call without intent is not made":   (*subject).noIntent,
		"another process gets nothing":        (*subject).impostor,
		"an observation ends when it is told": (*subject).stopped,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(&subject{Receiver: fresh(t), t: t})
		})
	}
}

type subject struct {
	*Receiver
	t *testing.T
}

var bg = context.Background()

// proposal waits until the thread is idle and makes the call that may be made then.
func (s *subject) proposal(text string) channel.Proposal {
	s.t.Helper()
	var r channel.Readiness
	poll.Until(s.t, "an idle thread", func() bool {
		var err error
		r, err = s.Channel.Probe(bg, s.Query)
		return err == nil && r.Verdict == channel.Now
	})
	if r.Attachment == "" || r.Epoch == 0 {
		s.t.Fatalf("a probe names no stream: %+v", r)
	}
	return channel.Proposal{
		User: s.Query.User, Thread: s.Query.Thread, Mode: r.Mode, Request: "request-1", Marker: "thole-conform-1",
		Attachment: r.Attachment, Epoch: r.Epoch, Batch: "batch-1", Text: text,
	}
}

func (s *subject) accepted(p channel.Proposal) thole.TurnID {
	s.t.Helper()
	a, err := s.Channel.Propose(bg, p)
	if err != nil || a.Acceptance != thole.Accepted || a.Turn == "" || a.Attachment != p.Attachment || a.Epoch != p.Epoch || a.Evidence == "" {
		s.t.Fatalf("propose: %+v, %v", a, err)
	}
	return a.Turn
}

// observe follows a proposal to its end and returns what was seen, in order.
func (s *subject) observe(p channel.Proposal, turn thole.TurnID) (seen []channel.Sighting, err error) {
	s.t.Helper()
	over := false
	err = s.Channel.Observe(bg, channel.Watch{Proposal: p, Turn: turn}, func(g channel.Sighting) error {
		if over {
			s.t.Errorf("something was seen after the end: %+v", g)
		}
		if g.Attachment != p.Attachment || g.Epoch != p.Epoch || g.Evidence == "" {
			s.t.Errorf("a sighting without its stream or its proof: %+v", g)
		}
		over = g.Event.Terminal() || g.Acceptance == thole.Rejected
		seen = append(seen, g)
		return nil
	})
	return seen, err
}

// sees requires the acceptance, if it is not known, then the start and then the end.
func (s *subject) sees(p channel.Proposal, known, turn thole.TurnID, end thole.TurnEvent) {
	s.t.Helper()
	seen, err := s.observe(p, known)
	var got []string
	for _, g := range seen {
		got = append(got, string(g.Acceptance)+string(g.Event))
		if g.Turn != turn {
			s.t.Errorf("seen of turn %s, not of %s: %+v", g.Turn, turn, g)
		}
	}
	want := []string{string(thole.TurnEventStarted), string(end)}
	if known == "" {
		want = append([]string{string(thole.Accepted)}, want...)
	}
	if err != nil || !slices.Equal(got, want) {
		s.t.Errorf("saw %v, %v; want %v", got, err, want)
	}
}

func (s *subject) carries(n int) {
	s.t.Helper()
	if got := s.Deliveries(); got != n {
		s.t.Errorf("the thread has %d deliveries, want %d", got, n)
	}
}

func (s *subject) once() {
	p := s.proposal(s.Short)
	s.carries(0)
	turn := s.accepted(p)
	s.sees(p, turn, turn, thole.TurnEventCompleted)
	s.sees(p, turn, turn, thole.TurnEventCompleted) // a successor sees the same
	s.carries(1)
}

func (s *subject) glitch() {
	p := s.proposal(s.Short)
	turn := s.accepted(p)
	s.Glitch()
	s.sees(p, turn, turn, thole.TurnEventCompleted)
}

func (s *subject) interrupted() {
	p := s.proposal(s.Long)
	turn := s.accepted(p)
	s.Interrupt(turn)
	s.sees(p, turn, turn, thole.TurnEventInterrupted)
}

func (s *subject) lostAnswer() {
	p := s.proposal(s.Short)
	turn := s.accepted(p)
	s.sees(p, "", turn, thole.TurnEventCompleted)
	s.carries(1)
}

func (s *subject) neverSent() {
	p := s.proposal(s.Short)
	seen, err := s.observe(p, "")
	if err != nil || len(seen) != 1 || seen[0].Acceptance != thole.Rejected {
		s.t.Errorf("%+v, %v", seen, err)
	}
	s.carries(0)
}

func (s *subject) busy() {
	p := s.proposal(s.Short)
	turn := s.Occupy()
	r, err := s.Channel.Probe(bg, s.Query)
	if err != nil || r.Verdict != channel.NotNow || r.Why != channel.ReasonBusy {
		s.t.Errorf("probe: %+v, %v", r, err)
	}
	if a, err := s.Channel.Propose(bg, p); err != nil || a.Acceptance != thole.Rejected || a.Evidence == "" {
		s.t.Errorf("propose: %+v, %v", a, err)
	}
	s.Interrupt(turn)
	s.carries(0)
}

func (s *subject) otherEpoch() {
	p := s.proposal(s.Short)
	p.Epoch++
	if a, err := s.Channel.Propose(bg, p); err != nil || a.Acceptance != thole.Rejected {
		s.t.Errorf("propose: %+v, %v", a, err)
	}
	if seen, err := s.observe(p, ""); len(seen) > 0 || !errors.Is(err, channel.ErrLost) {
		s.t.Errorf("observe: %+v, %v", seen, err)
	}
	s.carries(0)
}

// The request and the marker come from the barrier: without them nobody recorded that
// the call would be made.
func (s *subject) noIntent() {
	for _, take := range []func(*channel.Proposal){
		func(p *channel.Proposal) { p.Request = "" }, func(p *channel.Proposal) { p.Marker = "" },
		func(p *channel.Proposal) { p.Attachment = "" },
	} {
		p := s.proposal(s.Short)
		take(&p)
		if a, err := s.Channel.Propose(bg, p); err != nil || a.Acceptance != thole.Rejected {
			s.t.Errorf("%+v: %+v, %v", p, a, err)
		}
	}
	s.carries(0)
}

func (s *subject) impostor() {
	if s.Impostor == nil {
		s.t.Skip("the receiver is in this process")
	}
	calls := s.Impostor()
	if r, err := s.Channel.Probe(bg, s.Query); err == nil && r.Verdict == channel.Now {
		s.t.Errorf("probe: %+v", r)
	}
	a, err := s.Channel.Propose(bg, channel.Proposal{
		User: s.Query.User, Thread: s.Query.Thread, Mode: thole.ModeTurnStart, Request: "request-1", Marker: "thole-conform-1",
		Attachment: s.Attachment, Epoch: 1, Batch: "batch-1", Text: s.Short,
	})
	if err != nil || a.Acceptance != thole.Rejected {
		s.t.Errorf("propose: %+v, %v", a, err)
	}
	if n := calls(); n > 0 {
		s.t.Errorf("another process got %d calls", n)
	}
	s.carries(0)
}

func (s *subject) stopped() {
	p := s.proposal(s.Long)
	turn := s.accepted(p)
	full := errors.New("full")
	w := channel.Watch{Proposal: p, Turn: turn}
	if err := s.Channel.Observe(bg, w, func(channel.Sighting) error { return full }); !errors.Is(err, full) {
		s.t.Errorf("a refused sighting: %v", err)
	}
	ctx, cancel := context.WithCancel(bg)
	if err := s.Channel.Observe(ctx, w, func(channel.Sighting) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		s.t.Errorf("a context that ended: %v", err)
	}
	s.Interrupt(turn)
	s.sees(p, turn, turn, thole.TurnEventInterrupted)
}
