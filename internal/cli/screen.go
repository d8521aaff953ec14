package cli

import (
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/tholehq/thole/internal/plain"
)

// A person who looks at a terminal gets colours, a line that says what is waited for, and
// text that is broken at the edge by us: where the terminal breaks a line, what follows
// would stand at its beginning as if it were ours.

// ttyOf is the terminal of a raw stream, nil where there is none.
func ttyOf(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && isTerminal(f) {
		return f
	}
	return nil
}

// person reports whether someone sits at standard input and sees standard error.
func (e *Env) person() bool { return !e.JSON && ttyOf(e.In) != nil && ttyOf(e.rawErr) != nil }

// raw is the stream that Out or Err shows its text on, nil for any other.
func (e *Env) raw(w io.Writer) io.Writer {
	if c, ok := w.(*checked); ok {
		w = c.w
	}
	switch w {
	case e.Out:
		return e.rawOut
	case e.Err:
		return e.rawErr
	}
	return nil
}

// width is the number of columns of a terminal, 0 for anything else.
func (e *Env) width(w io.Writer) int {
	tty := ttyOf(e.raw(w))
	if tty == nil {
		return 0
	}
	return sizeOf(tty).Columns
}

// Colours, as the terminal's own theme has them.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// colours reports whether a stream takes colours: https://no-color.org.
func colours(raw io.Writer) bool {
	return ttyOf(raw) != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// paint prints in a colour where there are colours. The escape sequences are ours alone: what
// print writes is shown as ever.
func (e *Env) paint(w io.Writer, colour string, print func(w io.Writer)) {
	raw := e.raw(w)
	if raw == nil || !colours(raw) {
		print(w)
		return
	}
	control(raw, "\x1b["+colour+"m")
	print(w)
	control(raw, "\x1b[0m")
}

// columns is the most that a character takes. Too many only break a line early.
func columns(r rune) int {
	if r >= 0x1100 && !unicode.Is(unicode.Mn, r) {
		return 2
	}
	return 1
}

// breakRows breaks a line that others wrote into rows that fit. It never returns nothing.
func breakRows(line string, room int) []string {
	line = plain.Line(strings.ReplaceAll(line, "\t", "    "))
	if room < 8 {
		room = 8
	}
	var rows []string
	start, used := 0, 0
	for i, r := range line {
		n := columns(r)
		if used+n > room {
			rows = append(rows, line[start:i])
			start, used = i, 0
		}
		used += n
	}
	return append(rows, line[start:])
}

// clip is the beginning of a line that fits.
func clip(line string, room int) string {
	rows := breakRows(line, room)
	if len(rows) == 1 {
		return rows[0]
	}
	return breakRows(line, room-1)[0] + "…"
}

// waiting is the line that says what is waited for while nothing else is printed. Only the
// goroutine that prints uses it.
type waiting struct {
	env   *Env
	tty   io.Writer // nil where nobody looks
	what  string
	since time.Time
	frame int
	shown bool
}

const spinEvery = 120 * time.Millisecond

var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

func (e *Env) newWaiting() *waiting {
	w := &waiting{env: e, since: time.Now()}
	if tty := ttyOf(e.rawErr); tty != nil && !e.JSON && os.Getenv("TERM") != "dumb" {
		w.tty = tty
	}
	return w
}

// ticks is when the line moves; nil where there is none.
func (w *waiting) ticks() (c <-chan time.Time, stop func()) {
	if w.tty == nil {
		return nil, func() {}
	}
	t := time.NewTicker(spinEvery)
	return t.C, t.Stop
}

// set says what is waited for from now on.
func (w *waiting) set(what string) {
	if w != nil && what != w.what {
		w.what, w.since = what, time.Now()
	}
}

func (w *waiting) draw() {
	if w == nil || w.tty == nil || w.what == "" {
		return
	}
	w.frame = (w.frame + 1) % len(frames)
	line := w.what
	if d := time.Since(w.since); d >= 2*time.Second {
		line += " · " + d.Truncate(time.Second).String()
	}
	line = clip(line, max(w.env.width(w.env.Err)-4, 1))
	control(w.tty, "\r\x1b[K")
	if !colours(w.env.rawErr) {
		put(w.tty, frames[w.frame], " ", line)
	} else {
		control(w.tty, "\x1b["+cyan+"m")
		put(w.tty, frames[w.frame])
		control(w.tty, "\x1b[0m \x1b["+dim+"m")
		put(w.tty, line)
		control(w.tty, "\x1b[0m")
	}
	w.shown = true
}

// clear takes the line away before anything else is printed.
func (w *waiting) clear() {
	if w != nil && w.shown {
		control(w.tty, "\r\x1b[K")
		w.shown = false
	}
}
