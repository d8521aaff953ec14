// Package terminal is what is said about a terminal over a WebSocket, in the wire
// protocol of ttyd, so that its page and its other clients attach too, and the
// client's end of it. Package shell serves it. It starts no process.
package terminal

import (
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
)

// Subprotocol is what both sides name in the WebSocket handshake.
const Subprotocol = "tty"

// A message is one byte that says what it is, and the rest. The client's first
// message is a JSON object instead, whose brace is that byte.
const (
	CmdHello  = '{'
	CmdInput  = '0' // bytes for the program
	CmdResize = '1' // a Size
	CmdPause  = '2' // no more output, until
	CmdResume = '3'

	OutOutput      = '0' // bytes of the program
	OutTitle       = '1'
	OutPreferences = '2' // settings of the client's own, a JSON object
)

const (
	// MaxMessage bounds a client's message: what a user pastes is one.
	MaxMessage = 1 << 20
	// Chunk is the most that one message of output carries.
	Chunk = 16 << 10
	// MaxReason is what fits a close frame.
	MaxReason = 123
	// ExitReason, with the code after it, is the reason of a shell's end.
	ExitReason = "exit code "
)

// Cut shortens a reason to what a close frame holds, at a rune boundary.
func Cut(s string) string {
	for len(s) > MaxReason || !utf8.ValidString(s) {
		s = s[:min(MaxReason, len(s)-1)]
	}
	return s
}

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

// Command is a message of a client.
type Command struct {
	Kind byte
	Data []byte // of cmdInput; a part of the message
	Size Size   // of cmdHello and cmdResize
}

// Decode reads a client's message. A hello that lacks a size has the default one,
// and may carry what other servers ask for.
func Decode(msg []byte) (Command, error) {
	if len(msg) == 0 {
		return Command{}, thole.Errorf(thole.CodeInvalid, "an empty message")
	}
	c := Command{Kind: msg[0]}
	switch c.Kind {
	case CmdInput:
		c.Data = msg[1:]
		return c, nil
	case CmdPause, CmdResume:
		return c, nil
	case CmdHello:
		if err := strictjson.Unmarshal(msg, &c.Size); err != nil {
			return c, thole.Errorf(thole.CodeInvalid, "the first message: %w", err)
		}
		if c.Size == (Size{}) {
			c.Size = DefaultSize
		}
		return c, c.Size.check()
	case CmdResize:
		if err := strictjson.Unmarshal(msg[1:], &c.Size); err != nil {
			return c, thole.Errorf(thole.CodeInvalid, "a resize: %w", err)
		}
		return c, c.Size.check()
	}
	return c, thole.Errorf(thole.CodeInvalid, "unknown command %q", c.Kind)
}
