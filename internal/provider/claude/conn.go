package claude

import (
	"encoding/json"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/process"
)

// conn is one CLI process and its pipe. What it says comes out in order through
// heard, all lines of one read together, which is closed at the end of stdout;
// when nobody listens, the CLI waits.
type conn struct {
	proc  *process.Process
	heard chan []said
	quit  chan struct{} // closed by close: nobody reads any more
	gone  chan struct{} // closed when the reader has ended

	once    sync.Once
	request atomic.Int64

	mu sync.Mutex // guards writes to stdin, one whole line each
}

func newConn(p *process.Process) *conn {
	c := &conn{proc: p, heard: make(chan []said, 1), quit: make(chan struct{}), gone: make(chan struct{})}
	go c.read()
	return c
}

func (c *conn) read() {
	defer close(c.gone)
	defer close(c.heard)
	defer c.proc.Stdout.Close()
	lines := process.NewLines(process.Gather(c.proc.Stdout))
	var batch []said
	for {
		line, err := lines.Next()
		if err != nil {
			return
		}
		if m, err := parse(line); err == nil { // else something printed to stdout
			batch = append(batch, m)
		}
		if len(batch) == 0 || lines.Ready() {
			continue
		}
		select {
		case c.heard <- batch:
			batch = nil
		case <-c.quit:
			return
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
	if _, err := c.proc.Stdin.Write(append(raw, '\n')); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "write to claude: %w", err)
	}
	return nil
}

// control sends a control request and returns its id; the answer comes as a
// message.
func (c *conn) control(subtype string, fields map[string]any) (string, error) {
	id := "thole-" + strconv.FormatInt(c.request.Add(1), 10)
	body := map[string]any{"subtype": subtype}
	for k, v := range fields {
		body[k] = v
	}
	return id, c.send(map[string]any{"type": "control_request", "request_id": id, "request": body})
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

// close ends the process and everything it left behind. grace 0 kills at once.
func (c *conn) close(grace time.Duration) {
	c.once.Do(func() { close(c.quit) })
	if grace > 0 {
		c.proc.Stop(grace)
	} else {
		c.proc.Kill()
	}
	<-c.gone
}

// kill ends the process; what it said before stays readable.
func (c *conn) kill() { c.proc.Kill() }

func (c *conn) dead() bool {
	select {
	case <-c.proc.Done():
		return true
	default:
		return false
	}
}
