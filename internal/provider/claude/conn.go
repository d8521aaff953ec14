package claude

import (
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider/base"
)

// conn is one CLI process and its pipe. Its reader takes every message to the turn
// that listens; without one the CLI waits.
type conn struct {
	base.Process
	ears chan listener // holds the newest that the reader does not know yet
	quit chan struct{} // closed by close: nobody listens any more
	long error         // a line that was too long ended it; set before Read is closed

	once    sync.Once
	request atomic.Int64
	wanted  chan struct{} // a query waits: the reader reads on without a listener

	mu sync.Mutex // guards writes to stdin, one whole line each

	left leftRunning

	asks    sync.Mutex                       // guards what follows
	answers map[string]chan *controlResponse // of queries, by their ids
	hello   *controlResponse                 // to initialize
	named   []string                         // skills, as of the last turn's beginning
}

// maxHeld bounds the messages that are kept while only a query listens.
const maxHeld = 1000

// listener hears the CLI until its turn ends.
type listener struct {
	lock *base.TurnLock
	hear func(*message)
}

func newConn(p *process.Process) *conn {
	gone := make(chan struct{})
	c := &conn{Process: base.Process{Process: p, Read: gone}, ears: make(chan listener, 1), quit: make(chan struct{}),
		wanted: make(chan struct{}, 1), answers: map[string]chan *controlResponse{}}
	go func() {
		defer close(gone)
		c.read()
	}()
	return c
}

// listen makes l the listener. The one before has ended.
func (c *conn) listen(l listener) {
	select {
	case <-c.ears: // never heard a word
	default:
	}
	c.ears <- l
}

func (c *conn) read() {
	defer c.Stdout.Close()
	lines := process.NewLines(c.Stdout)
	var l listener
	var held []*message // came while nobody but a query listened
	for {
		for len(held) > 0 {
			if l.lock != nil && l.lock.Act(func() { l.hear(held[0]) }) {
				held = held[1:]
				continue
			}
			if c.asked() && len(held) < maxHeld {
				break
			}
			select {
			case l = <-c.ears:
			case <-c.wanted:
			case <-c.quit:
				return
			}
		}
		line, err := lines.Next()
		if err != nil {
			if errors.Is(err, process.ErrTooLong) {
				c.long = err
			}
			return
		}
		if m, err := parse(line); err == nil && !c.answered(m) { // else something printed to stdout
			c.left.see(m)
			held = append(held, m)
		}
	}
}

func (c *conn) send(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.Stdin.Write(append(raw, '\n')); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "write to claude: %w", err)
	}
	return nil
}

// control sends a control request and returns its id; the answer comes as a
// message.
func (c *conn) control(subtype string, fields map[string]any) (string, error) {
	id := c.nextID()
	return id, c.ask(id, subtype, fields)
}

func (c *conn) nextID() string { return "thole-" + strconv.FormatInt(c.request.Add(1), 10) }

func (c *conn) ask(id, subtype string, fields map[string]any) error {
	body := map[string]any{"subtype": subtype}
	for k, v := range fields {
		body[k] = v
	}
	return c.send(map[string]any{"type": "control_request", "request_id": id, "request": body})
}

// answer settles a control request of the CLI.
func (c *conn) answer(requestID string, response any) error {
	return c.send(map[string]any{"type": "control_response", "response": map[string]any{
		"subtype": "success", "request_id": requestID, "response": response,
	}})
}

func (c *conn) refuse(requestID, why string) error {
	return c.send(map[string]any{"type": "control_response", "response": map[string]any{
		"subtype": "error", "request_id": requestID, "error": why,
	}})
}

// Close ends the process and everything it left behind.
func (c *conn) Close(grace time.Duration) {
	c.once.Do(func() { close(c.quit) })
	c.Process.Close(grace)
}
