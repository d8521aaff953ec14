package codex

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/strictjson"
)

// errGone ends calls whose answer will not come.
var errGone = errors.New("the connection to codex has ended")

// client is the driver's end of the app-server's wire, on the codec and framing
// of internal/jsonrpc. It is no jsonrpc.Conn because everything, from the bytes to
// the event, happens on its reader: an event blocks as backpressure, and an answer
// must not overtake the notifications before it.
type client struct {
	stream jsonrpc.Stream
	totals wireTokens         // the thread's, as last told; the reader's own
	collab *collaborationMode // as last told to codex; of the turn that runs

	writeMu sync.Mutex // held while a message is written

	mu    sync.Mutex // guards what follows
	calls map[int64]func(json.RawMessage, error)
	next  int64
	ended bool

	done chan struct{} // closed when the reader is gone
}

func newClient(stream jsonrpc.Stream) *client {
	return &client{stream: stream, calls: map[int64]func(json.RawMessage, error){}, done: make(chan struct{})}
}

// read serves the connection until it ends. handle gets notifications and requests,
// in order, with callbacks of Go in between.
func (c *client) read(handle func(*jsonrpc.Message)) {
	defer close(c.done)
	for {
		line, err := c.stream.Read(context.Background())
		if err != nil {
			break
		}
		m, err := jsonrpc.Decode(line, jsonrpc.Limits{Values: -1, LastKeyWins: true})
		if err != nil {
			continue // codex ignores what it cannot read, and so do we
		}
		if m.Kind == jsonrpc.KindNotification || m.Kind == jsonrpc.KindRequest {
			handle(&m)
			continue
		}
		id, _ := m.ID.Int()
		c.mu.Lock()
		answer := c.calls[id]
		delete(c.calls, id)
		c.mu.Unlock()
		switch {
		case answer == nil:
		case m.Error != nil:
			answer(nil, m.Error)
		default:
			answer(m.Result, nil)
		}
	}
	c.mu.Lock()
	calls := c.calls
	c.calls, c.ended = nil, true
	c.mu.Unlock()
	for _, answer := range calls {
		answer(nil, errGone)
	}
}

// alive reports whether the connection has not ended yet.
func (c *client) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.ended
}

// Go sends a request; answer runs on the reader and must not wait. The result is
// valid during the call. Of a request that was not sent either the caller hears or
// answer, never both.
func (c *client) Go(method string, params any, answer func(json.RawMessage, error)) error {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return errGone
	}
	c.next++
	id := c.next
	c.calls[id] = answer
	c.mu.Unlock()
	f, err := jsonrpc.EncodeRequest(jsonrpc.IntID(id), method, params)
	if err == nil {
		err = c.write(f.Bytes())
	}
	if err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, waits := c.calls[id]; !waits {
		return nil
	}
	delete(c.calls, id)
	return err
}

// Call sends a request and waits for its answer. It must not be called on the
// reader.
func (c *client) Call(ctx context.Context, method string, params, result any) error {
	done := make(chan error, 1)
	err := c.Go(method, params, func(raw json.RawMessage, err error) {
		if err == nil && result != nil {
			err = strictjson.Unmarshal(raw, result)
		}
		done <- err
	})
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Notify sends a notification.
func (c *client) Notify(method string) error {
	f, err := jsonrpc.EncodeNotification(method, nil)
	if err != nil {
		return err
	}
	return c.write(f.Bytes())
}

// Reply answers a request of codex.
func (c *client) Reply(id jsonrpc.ID, result any, refusal *jsonrpc.Error) error {
	data, err := json.Marshal(struct {
		ID     jsonrpc.ID     `json:"id"`
		Result any            `json:"result,omitempty"`
		Error  *jsonrpc.Error `json:"error,omitempty"`
	}{id, result, refusal})
	if err != nil {
		return err
	}
	return c.write(data)
}

func (c *client) write(msg []byte) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	return c.stream.Write(context.Background(), msg)
}
