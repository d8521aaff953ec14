package terminal

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
)

// Subprotocol is what both sides name in the WebSocket handshake.
const Subprotocol = "tty"

// A message is one byte that says what it is, and the rest. The client's first
// message is a JSON object instead, whose brace is that byte.
const (
	cmdHello  = '{'
	cmdInput  = '0' // bytes for the program
	cmdResize = '1' // a Size
	cmdPause  = '2' // no more output, until
	cmdResume = '3'

	outOutput      = '0' // bytes of the program
	outTitle       = '1'
	outPreferences = '2' // settings of the client's own, a JSON object
)

// maxSide bounds a terminal: programs make room for all of it.
const maxSide = 4096

// Size is a terminal's size in characters.
type Size struct {
	Columns int `json:"columns"`
	Rows    int `json:"rows"`
}

// DefaultSize is that of a client that names none.
var DefaultSize = Size{Columns: 80, Rows: 24}

func (s Size) check() error {
	if s.Columns < 1 || s.Columns > maxSide || s.Rows < 1 || s.Rows > maxSide {
		return thole.Errorf(thole.CodeInvalid, "a terminal has 1 to %d columns and rows, not %d by %d", maxSide, s.Columns, s.Rows)
	}
	return nil
}

// command is a message of a client.
type command struct {
	kind byte
	data []byte // of cmdInput; a part of the message
	size Size   // of cmdHello and cmdResize
}

// decode reads a client's message. A hello that lacks a size has the default one,
// and may carry what other servers ask for.
func decode(msg []byte) (command, error) {
	if len(msg) == 0 {
		return command{}, thole.Errorf(thole.CodeInvalid, "an empty message")
	}
	c := command{kind: msg[0]}
	switch c.kind {
	case cmdInput:
		c.data = msg[1:]
		return c, nil
	case cmdPause, cmdResume:
		return c, nil
	case cmdHello:
		if err := strictjson.Unmarshal(msg, &c.size); err != nil {
			return c, thole.Errorf(thole.CodeInvalid, "the first message: %w", err)
		}
		if c.size == (Size{}) {
			c.size = DefaultSize
		}
		return c, c.size.check()
	case cmdResize:
		if err := strictjson.Unmarshal(msg[1:], &c.size); err != nil {
			return c, thole.Errorf(thole.CodeInvalid, "a resize: %w", err)
		}
		return c, c.size.check()
	}
	return c, thole.Errorf(thole.CodeInvalid, "unknown command %q", c.kind)
}
