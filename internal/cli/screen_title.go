package cli

import (
	"io"
	"time"

	"github.com/tholehq/thole/internal/plain"
)

// ringAfter is how long a turn has taken before its end rings: who waited less is looking.
const ringAfter = 10 * time.Second

// titleBar is the title of a terminal's window while a turn is followed, and its bell. The
// title that was there is put back.
type titleBar struct {
	tty   io.Writer // nil where no person sits
	since time.Time
	shown bool
}

func (e *Env) newTitleBar() *titleBar {
	b := &titleBar{since: time.Now()}
	if w := e.newWaiting(); e.person() && !e.Quiet {
		b.tty = w.tty
	}
	return b
}

// set shows what a thread does in the title.
func (b *titleBar) set(what string) {
	if b.tty == nil {
		return
	}
	if !b.shown {
		b.shown = true
		control(b.tty, "\x1b[22;2t") // the terminal keeps the present title
	}
	control(b.tty, "\x1b]2;thole: "+plain.Line(what)+"\a")
}

func (b *titleBar) ring() {
	if b.tty != nil {
		control(b.tty, "\a")
	}
}

// end rings for a turn that took long, and puts the title back.
func (b *titleBar) end(rings bool) {
	if rings && time.Since(b.since) >= ringAfter {
		b.ring()
	}
	if b.shown {
		b.shown = false
		control(b.tty, "\x1b[23;2t")
	}
}
