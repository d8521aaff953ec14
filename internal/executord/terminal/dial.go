package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"

	"github.com/coder/websocket"
)

// Conn is a client's end of a terminal. One goroutine may Read while others Write,
// resize, pause and close. A client that does not read is taken for dead after a while:
// to have output wait, Pause and go on reading.
type Conn struct {
	ws   *websocket.Conn
	rest []byte // of a message
	exit int    // set before Read returns io.EOF
}

// Dial asks for a terminal at an http:// address. What a server says that refuses is
// read by refused.
func Dial(ctx context.Context, client *http.Client, url string, header http.Header, size Size, refused func(*http.Response) error) (*Conn, error) {
	if err := size.check(); err != nil {
		return nil, err
	}
	ws, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{ //nolint:bodyclose // the library has read it
		HTTPClient: client, HTTPHeader: header, Subprotocols: []string{Subprotocol}, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil && resp != nil {
		return nil, refused(resp)
	}
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "reach executor: %w", err)
	}
	ws.SetReadLimit(MaxMessage)
	hello, _ := json.Marshal(size)
	if err := ws.Write(ctx, websocket.MessageText, hello); err != nil {
		_ = ws.CloseNow()
		return nil, thole.Errorf(thole.CodeUnavailable, "open terminal: %w", err)
	}
	return &Conn{ws: ws}, nil
}

// Read returns output. io.EOF means that the shell ended, and ExitCode is known;
// any other error that the terminal was lost, with the reason the server gave.
func (c *Conn) Read(b []byte) (int, error) {
	for len(c.rest) == 0 {
		_, msg, err := c.ws.Read(context.Background())
		if err != nil {
			return 0, c.ended(err)
		}
		if len(msg) > 0 && msg[0] == OutOutput {
			c.rest = msg[1:]
		}
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *Conn) ended(err error) error {
	var ce websocket.CloseError
	if !errors.As(err, &ce) {
		return thole.Errorf(thole.CodeUnavailable, "the terminal was lost: %w", err)
	}
	code, told := strings.CutPrefix(ce.Reason, ExitReason)
	n, err := strconv.Atoi(code)
	if !told || err != nil {
		return thole.Errorf(thole.CodeUnavailable, "the terminal was closed: %s", ce.Reason)
	}
	c.exit = n
	return io.EOF
}

// ExitCode is the shell's, known after io.EOF.
func (c *Conn) ExitCode() int { return c.exit }

// Write sends input.
func (c *Conn) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		part := b[:min(len(b), Chunk)]
		if err := c.send(append([]byte{CmdInput}, part...)); err != nil {
			return n, err
		}
		n += len(part)
		b = b[len(part):]
	}
	return n, nil
}

// Resize sends the terminal's new size.
func (c *Conn) Resize(size Size) error {
	body, _ := json.Marshal(size)
	return c.send(append([]byte{CmdResize}, body...))
}

// Pause asks for no more output; what is under way still comes.
func (c *Conn) Pause() error { return c.send([]byte{CmdPause}) }

// Resume asks for output again.
func (c *Conn) Resume() error { return c.send([]byte{CmdResume}) }

func (c *Conn) send(msg []byte) error {
	if err := c.ws.Write(context.Background(), websocket.MessageBinary, msg); err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}

// Close leaves, which ends the shell.
func (c *Conn) Close() error { return c.ws.CloseNow() }
