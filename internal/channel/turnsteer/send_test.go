package turnsteer

import (
	"context"
	"errors"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
)

// server answers a steer as a test says, and counts.
type server struct {
	turn  thole.TurnID
	err   error
	calls int
}

func (s *server) Steer(_ context.Context, turn thole.TurnID, marker, text string) (thole.TurnID, error) {
	s.calls++
	if turn != "u" || marker != "m" || text != "result" {
		return "", errors.New("not what was asked for")
	}
	return s.turn, s.err
}

func TestPropose(t *testing.T) {
	call := channel.Proposal{Thread: "t", Attachment: "a", Epoch: 3, Mode: thole.ModeTurnSteer, Request: "r", Marker: "m", Text: "result"}
	for name, c := range map[string]struct {
		server server
		spoil  func(*Gate, *Active, *channel.Proposal)
		want   thole.Acceptance // "" for an error: the fate is open
		calls  int
	}{
		"accepted":         {server: server{turn: "u"}, want: thole.Accepted, calls: 1},
		"refused":          {server: server{err: &Refusal{"no longer steerable"}}, want: thole.Rejected, calls: 1},
		"answer lost":      {server: server{err: errors.New("cut")}, calls: 1},
		"another turn":     {server: server{turn: "x"}, calls: 1},
		"gate closed":      {server: server{turn: "u"}, spoil: func(g *Gate, _ *Active, _ *channel.Proposal) { *g = Gate{} }, want: thole.Rejected},
		"review":           {server: server{turn: "u"}, spoil: func(_ *Gate, a *Active, _ *channel.Proposal) { a.Kind = Review }, want: thole.Rejected},
		"no marker":        {server: server{turn: "u"}, spoil: func(_ *Gate, _ *Active, p *channel.Proposal) { p.Marker = "" }, want: thole.Rejected},
		"start, not steer": {server: server{turn: "u"}, spoil: func(_ *Gate, _ *Active, p *channel.Proposal) { p.Mode = thole.ModeTurnStart }, want: thole.Rejected},
		"another epoch":    {server: server{turn: "u"}, spoil: func(_ *Gate, _ *Active, p *channel.Proposal) { p.Epoch = 2 }, want: thole.Rejected},
	} {
		g, capability, a, r := perfect()
		p := call
		if c.spoil != nil {
			c.spoil(&g, &a, &p)
		}
		answer, err := Propose(context.Background(), &c.server, g, capability, a, r, p)
		if (err != nil) != (c.want == "") || answer.Acceptance != c.want || c.server.calls != c.calls {
			t.Errorf("%s: %+v, %v after %d calls", name, answer, err, c.server.calls)
		}
		if answer.Acceptance == thole.Accepted && (answer.Turn != "u" || answer.Epoch != 3) {
			t.Errorf("%s: %+v", name, answer)
		}
	}
}
