package appclient

import (
	"context"

	"github.com/tholehq/thole/protocol/app"
)

func call[R any](ctx context.Context, c *Client, method string, params any) (R, error) {
	var out R
	err := c.Call(ctx, method, params, &out)
	return out, err
}

// StartThread makes a thread and subscribes to it.
func (c *Client) StartThread(ctx context.Context, p app.ThreadStartParams) (app.ThreadView, error) {
	return call[app.ThreadView](ctx, c, "thread/start", p)
}

// Resume subscribes to a thread and returns it as it is.
func (c *Client) Resume(ctx context.Context, p app.ThreadResumeParams) (app.ThreadResumeResult, error) {
	return call[app.ThreadResumeResult](ctx, c, "thread/resume", p)
}

// Fork copies a thread and subscribes to the copy.
func (c *Client) Fork(ctx context.Context, p app.ThreadForkParams) (app.ThreadView, error) {
	return call[app.ThreadView](ctx, c, "thread/fork", p)
}

// Attach subscribes, after a cursor if one is given. It needs Extended.
func (c *Client) Attach(ctx context.Context, p app.AttachParams) (app.AttachResult, error) {
	return call[app.AttachResult](ctx, c, "thole/thread/attach", p)
}

// ReadThread returns a thread without subscribing.
func (c *Client) ReadThread(ctx context.Context, id string) (app.Thread, error) {
	r, err := call[app.ThreadResult](ctx, c, "thread/read", app.ThreadReadParams{ThreadID: id})
	return r.Thread, err
}

// ListThreads returns a page of threads.
func (c *Client) ListThreads(ctx context.Context, p app.ThreadListParams) (app.ThreadListResult, error) {
	return call[app.ThreadListResult](ctx, c, "thread/list", p)
}

// Turns returns a page of turns.
func (c *Client) Turns(ctx context.Context, p app.TurnsListParams) (app.TurnsPage, error) {
	return call[app.TurnsPage](ctx, c, "thread/turns/list", p)
}

// Items returns a page of items.
func (c *Client) Items(ctx context.Context, p app.ItemsListParams) (app.ItemsPage, error) {
	return call[app.ItemsPage](ctx, c, "thread/items/list", p)
}

// Unsubscribe ends a subscription.
func (c *Client) Unsubscribe(ctx context.Context, id string) error {
	return c.Call(ctx, "thread/unsubscribe", app.ThreadParams{ThreadID: id}, nil)
}

// StartTurn gives input to a thread: a new turn, or a steer of the running one.
func (c *Client) StartTurn(ctx context.Context, p app.TurnStartParams) (app.Turn, error) {
	r, err := call[app.TurnResult](ctx, c, "turn/start", p)
	return r.Turn, err
}

// StartTurnIfIdle starts a turn or changes nothing. It needs Extended.
func (c *Client) StartTurnIfIdle(ctx context.Context, p app.TurnStartParams) (app.Turn, error) {
	r, err := call[app.TurnResult](ctx, c, "thole/turn/startIfIdle", p)
	return r.Turn, err
}

// Steer adds input to the running turn.
func (c *Client) Steer(ctx context.Context, p app.TurnSteerParams) error {
	return c.Call(ctx, "turn/steer", p, nil)
}

// Interrupt asks the running turn to stop.
func (c *Client) Interrupt(ctx context.Context, thread, turn string) error {
	return c.Call(ctx, "turn/interrupt", app.TurnInterruptParams{ThreadID: thread, TurnID: turn}, nil)
}

// Enqueue queues a message after the running turn. It needs Experimental.
func (c *Client) Enqueue(ctx context.Context, p app.QueueAddParams) (app.QueuedSubmission, error) {
	r, err := call[app.QueueResult](ctx, c, "thread/queue/add", p)
	return r.QueuedSubmission, err
}

// Queue returns the messages that wait. It needs Experimental.
func (c *Client) Queue(ctx context.Context, thread string) ([]app.QueuedSubmission, error) {
	r, err := call[app.QueueListResult](ctx, c, "thread/queue/list", app.ThreadParams{ThreadID: thread})
	return r.Data, err
}

// Dequeue takes a waiting message back. It needs Experimental.
func (c *Client) Dequeue(ctx context.Context, thread, id string) (bool, error) {
	r, err := call[app.DeletedResult](ctx, c, "thread/queue/delete", app.QueueParams{ThreadID: thread, QueuedSubmissionID: &id})
	return r.Deleted, err
}

// Setup sets a thread's workspace up again, in a turn whose id it returns, nil while that
// waits for the running one. It needs Extended.
func (c *Client) Setup(ctx context.Context, thread string) (turn *string, err error) {
	r, err := call[app.SetupResult](ctx, c, "thole/thread/setup", app.ThreadParams{ThreadID: thread})
	return r.TurnID, err
}

// Answer settles an ask by its id. It needs Extended.
func (c *Client) Answer(ctx context.Context, thread, ask string, a app.Answer) (app.Ask, error) {
	r, err := call[app.AskResult](ctx, c, "thole/ask/answer", app.AskAnswerParams{ThreadID: thread, AskID: ask, Answer: a})
	return r.Ask, err
}

// Asks lists a thread's asks. It needs Extended.
func (c *Client) Asks(ctx context.Context, thread string, pendingOnly bool) ([]app.Ask, error) {
	r, err := call[app.AskListResult](ctx, c, "thole/ask/list", app.AskListParams{ThreadID: thread, PendingOnly: pendingOnly})
	return r.Data, err
}

// Text is input of one text part.
func Text(s string) []app.UserInput { return []app.UserInput{{Type: "text", Text: s}} }
