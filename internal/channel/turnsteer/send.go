package turnsteer

import (
	"context"
	"errors"
	"fmt"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
)

// Server is the one call that steering makes. A Refusal is the server's own no:
// then nothing happened. Any other error leaves the call's fate open.
type Server interface {
	// Steer adds text to turn, if that is the running one, and returns the turn it
	// was added to.
	Steer(ctx context.Context, turn thole.TurnID, marker, text string) (thole.TurnID, error)
}

// Refusal is a server's no to a steer.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

// Propose steers a delivery that is durably accept_pending, once, if every proof is
// there. Without one nothing is sent and the delivery waits for an idle thread. An
// accepted steer is no delivery: only the end of that very turn is.
func Propose(ctx context.Context, s Server, g Gate, c Capability, a Active, r Request, p channel.Proposal) (channel.Answer, error) {
	rejected := func(why error) (channel.Answer, error) {
		return channel.Answer{Acceptance: thole.Rejected, Evidence: "nothing was steered: " + why.Error()}, nil
	}
	if err := Eligible(g, c, a, r); err != nil {
		return rejected(err)
	}
	if p.Mode != thole.ModeTurnSteer || p.Request == "" || p.Marker == "" || p.Thread != r.Thread || p.Attachment != r.Attachment || p.Epoch != r.Epoch {
		return rejected(fmt.Errorf("the call is not the one that was proven"))
	}
	turn, err := s.Steer(ctx, a.Turn, p.Marker, p.Text)
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		return rejected(refusal)
	case err != nil:
		return channel.Answer{}, fmt.Errorf("the answer to turn/steer was lost: %w", err)
	case turn != a.Turn:
		return channel.Answer{}, fmt.Errorf("the message went to turn %q, not to %s", turn, a.Turn)
	}
	return channel.Answer{Acceptance: thole.Accepted, Turn: turn, Attachment: p.Attachment, Epoch: p.Epoch, Evidence: "the answer names the running turn"}, nil
}
