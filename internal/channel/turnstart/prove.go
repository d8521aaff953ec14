package turnstart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/procid"
	"github.com/tholehq/thole/protocol/app"
)

// trial is that of the queue of one server process.
type trial struct {
	mu     sync.Mutex // held while it is made
	passed bool
	again  time.Time // a failed one is not made before
}

// trialSource marks the conversations that queues are tried in.
const trialSource = "thole_probe"

func (c *Channel) trial(of procid.Identity) *trial      { return c.trialIn(c.trials, of) }
func (c *Channel) steerTrial(of procid.Identity) *trial { return c.trialIn(c.steerTrials, of) }

func (c *Channel) trialIn(all map[procid.Identity]*trial, of procid.Identity) *trial {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all[of] == nil {
		maps.DeleteFunc(all, func(p procid.Identity, _ *trial) bool { return p.Alive() != nil })
		all[of] = &trial{}
	}
	return all[of]
}

// prove tries the queue of a server, once for each process, in a conversation of
// its own that is removed again: on a busy thread a message waits, is not started
// by name, and can be taken back. A shell command is what keeps the thread busy;
// no model is asked. Before that nothing is delivered.
func (c *Channel) prove(ctx context.Context, l *link, a attachment.Attachment) error {
	if !l.queued {
		return nil
	}
	made := c.trial(a.Process)
	made.mu.Lock()
	defer made.mu.Unlock()
	if made.passed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, giveUp)
	defer cancel()
	began, ended := make(chan string, 16), make(chan string, 16)
	o := c.options()
	o.OnNotification = func(n appclient.Notification) {
		tell := map[string]chan string{"turn/started": began, "turn/completed": ended}[n.Method]
		_, turn := turnOf(n.Params)
		select {
		case tell <- turn.ID():
		default:
		}
	}
	client, err := c.dial(ctx, a, o)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := tidy(ctx, client, c.leftAfter); err != nil {
		return err
	}
	fresh := archive{client: client, queued: true}
	if err := fresh.converse(ctx, func() error { return try(ctx, fresh, began, ended) }); err != nil {
		return thole.Errorf(thole.CodeUnsupported, "the app-server's queue does not do what it has to: %w", err)
	}
	made.passed = true
	return nil
}

// converse makes a conversation on the server for a trial, which fn then has in the
// archive, and removes it again.
func (a *archive) converse(ctx context.Context, fn func() error) (err error) {
	var made struct {
		Thread wireThread `json:"thread"`
	}
	if err := a.client.Call(ctx, "thread/start", params{"sandbox": "read-only", "approvalPolicy": "never", "threadSource": trialSource}, &made); err != nil {
		return err
	}
	a.thread = made.Thread.ID
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
		defer cancel()
		if e := a.call(clean, "thread/delete", params{}, nil); err == nil {
			err = e
		}
	}()
	return fn()
}

func try(ctx context.Context, a archive, began, ended <-chan string) (err error) {
	await := func(what string, c <-chan string) (turn string, err error) {
		select {
		case turn = <-c:
		case <-a.client.Done():
			err = fmt.Errorf("the connection ended before %s", what)
		case <-ctx.Done():
			err = fmt.Errorf("no %s: %w", what, ctx.Err())
		}
		return turn, err
	}
	// Longer than the trial may take, and not for long if nobody is there to end it.
	if err := a.call(ctx, "thread/shellCommand", params{"command": "sleep 20"}, nil); err != nil {
		return err
	}
	turn, err := await("turn/started", began)
	if err != nil {
		return err
	}
	marker := "thole-probe-" + thole.NewID[string](time.Now())
	var out app.QueueResult
	err = a.call(ctx, "thread/queue/add", params{"input": appclient.Text("thole asks whether this server queues; there is nothing to do."), "clientUserMessageId": marker}, &out)
	if err != nil {
		return err
	}
	entry, err := a.entry(ctx, marker)
	switch {
	case err != nil:
		return err
	case entry == "" || entry != out.QueuedSubmission.ID:
		return fmt.Errorf("message %q is listed as %q", out.QueuedSubmission.ID, entry)
	}
	err = a.call(ctx, "thread/queue/start", params{"queuedSubmissionId": entry}, nil)
	switch {
	case err == nil:
		return errors.New("a busy thread lets a queued message start")
	case !refused(err):
		return err
	}
	deleted, err := a.drop(ctx, entry)
	switch {
	case err != nil:
		return err
	case !deleted:
		return errors.New("a queued message cannot be taken back")
	}
	if entry, err = a.entry(ctx, marker); err != nil {
		return err
	}
	if err := a.call(ctx, "turn/interrupt", params{"turnId": turn}, nil); err != nil {
		return err
	}
	last, err := await("turn/completed", ended)
	switch {
	case err != nil:
		return err
	case entry != "":
		return errors.New("a message that was taken back is still listed")
	case last != turn || len(began) > 0:
		return errors.New("a queued message opened a turn of a busy thread")
	}
	return nil
}

// tidy removes what trials left whose makers did not outlive them. A young one may
// be another deliverer's that is still at it.
func tidy(ctx context.Context, c *appclient.Client, after time.Duration) error {
	var left []string
	err := loaded(ctx, c, func(t wireThread) {
		if t.ThreadSource != nil && *t.ThreadSource == trialSource && time.Since(time.Unix(t.CreatedAt, 0)) >= after {
			left = append(left, t.ID)
		}
	})
	for _, id := range left {
		if e := c.Call(ctx, "thread/delete", params{"threadId": id}, nil); !refused(e) { // else it is gone already
			err = errors.Join(err, e)
		}
	}
	return err
}
