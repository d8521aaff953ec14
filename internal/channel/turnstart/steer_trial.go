package turnstart

import (
	"context"
	"errors"
	"fmt"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/channel/turnend"
	"github.com/tholehq/thole/internal/channel/turnsteer"
	"github.com/tholehq/thole/protocol/app"
)

// trialText makes a turn that lasts for long enough to be steered.
const trialText = "Write the numbers from 1 to 300, one on each line, and nothing else."

// trialTime bounds a trial, for which a model is asked.
const trialTime = time.Minute

// steers tries steering on a server, once for each process, in a conversation of its own
// that is removed again. It asks the model for one short turn, which is why nobody but a
// person who opened the gate has it done. A trial that failed is made again later.
func (c *Channel) steers(ctx context.Context, a attachment.Attachment) (turnsteer.Capability, error) {
	made := c.steerTrial(a.Process)
	made.mu.Lock()
	defer made.mu.Unlock()
	if made.passed {
		return turnsteer.Presumed(a.Epoch), nil
	}
	if time.Now().Before(made.again) {
		return turnsteer.Capability{}, errors.New("steering was tried a moment ago and did not do what it has to")
	}
	made.again = time.Now().Add(cannotPause)
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	began, ended := make(chan turnend.Read, 16), make(chan turnend.Read, 16)
	o := c.options()
	o.OnNotification = func(n appclient.Notification) {
		_, turn := turnOf(n.Params)
		select {
		case map[string]chan turnend.Read{"turn/started": began, "turn/completed": ended}[n.Method] <- turn:
		default:
		}
	}
	client, err := c.dial(ctx, a, o)
	if err != nil {
		return turnsteer.Capability{}, err
	}
	defer client.Close()
	fresh := archive{client: client}
	if err := fresh.converse(ctx, func() error { return c.trySteer(ctx, fresh, began, ended) }); err != nil {
		return turnsteer.Capability{}, thole.Errorf(thole.CodeUnsupported, "steering does not do what it has to: %w", err)
	}
	made.passed = true
	return turnsteer.Presumed(a.Epoch), nil
}

// trySteer proves the capabilities one by one: a steer of another turn is refused, the
// answer names the turn, two messages are in it in their order, no other turn starts, and
// it completes.
func (c *Channel) trySteer(ctx context.Context, a archive, began, ended <-chan turnend.Read) error {
	await := func(what string, from <-chan turnend.Read) (t turnend.Read, err error) {
		select {
		case t = <-from:
		case <-a.client.Done():
			err = fmt.Errorf("the connection ended before %s", what)
		case <-ctx.Done():
			err = fmt.Errorf("no %s: %w", what, ctx.Err())
		}
		return t, err
	}
	text := trialText
	if c.trialText != "" {
		text = c.trialText
	}
	if err := a.call(ctx, "turn/start", params{"input": appclient.Text(text)}, nil); err != nil {
		return err
	}
	first, err := await("turn/started", began)
	if err != nil {
		return err
	}
	turn := thole.TurnID(first.ID())
	if _, err := a.Steer(ctx, thole.NewID[thole.TurnID](time.Now()), "thole-probe-other", "no"); err == nil {
		return errors.New("a message for another turn was taken")
	} else if !errors.As(err, new(*turnsteer.Refusal)) {
		return err
	}
	markers := []string{"thole-probe-" + thole.NewID[string](time.Now()), "thole-probe-" + thole.NewID[string](time.Now())}
	for _, m := range markers {
		got, err := a.Steer(ctx, turn, m, "thole tries whether this turn takes a message; go on.")
		switch {
		case err != nil:
			return err
		case got != turn:
			return fmt.Errorf("the answer names turn %s, not %s", got, turn)
		}
	}
	last, err := await("turn/completed", ended)
	if err != nil {
		return err
	}
	var judge turnend.Judge
	judge.Completed(last)
	if end, _ := judge.Verdict(); end != thole.TurnEventCompleted || last.ID() != first.ID() || len(began) > 0 {
		return fmt.Errorf("turn %s ended as %q, with %d other turns", last.ID(), end, len(began))
	}
	var page wireItems
	if err := a.call(ctx, "thread/items/list", params{"turnId": first.ID(), "limit": 100, "sortDirection": "asc"}, &page); err != nil {
		return err
	}
	next := 0
	for _, d := range page.Data {
		if d.Item.Type == app.ItemUserMessage && next < len(markers) && d.Item.marked(markers[next]) {
			next++
		}
	}
	if next < len(markers) {
		return errors.New("the messages are not in the turn in their order")
	}
	return nil
}
