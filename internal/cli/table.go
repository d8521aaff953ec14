package cli

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/sys/unix"
	"golang.org/x/text/width"

	thole "github.com/tholehq/thole"
)

// tabled lays out cells that are separated by tabs, as text/tabwriter does, and fits
// them to the terminal: the widest text is cut, ids are not. Where that is not enough, ids of
// threads are shortened to beginnings that differ.
type tabled struct {
	w     io.Writer
	width int // 0: no limit
	buf   bytes.Buffer
}

func newTable(w io.Writer) *tabled {
	c := &tabled{w: w}
	if t, ok := w.(*checked); ok {
		c.width = t.width
	}
	return c
}

func (c *tabled) Write(b []byte) (int, error) { return c.buf.Write(b) }

// gap is between two columns; narrow is the least that a text is cut to.
const gap, narrow = 2, 12

// whole is a cell that is of no use when it is cut.
var whole = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-|^\d{4}-\d\d-\d\d \d\d:\d\d`)
})

// Flush writes the rows. A line without a tab is no row and stays as it is.
func (c *tabled) Flush() error {
	all := strings.TrimSuffix(c.buf.String(), "\n")
	c.buf.Reset()
	if all == "" {
		return nil
	}
	var rows [][]string
	var widths []int
	var kept []bool
	for line := range strings.SplitSeq(all, "\n") {
		cells := strings.Split(line, "\t")
		rows = append(rows, cells)
		for i, cell := range cells {
			if i == len(widths) {
				widths, kept = append(widths, 0), append(kept, i == 0)
			}
			if len(cells) > 1 {
				widths[i] = max(widths[i], cellsOf(cell))
			}
			kept[i] = kept[i] || whole().MatchString(cell)
		}
	}
	fit(widths, kept, c.width)
	if c.width > 0 && breadth(widths) > c.width {
		shorten(rows, widths)
	}
	var out strings.Builder
	for _, cells := range rows {
		for i, cell := range cells {
			if len(cells) > 1 && c.width > 0 {
				cell = cut(cell, widths[i])
			}
			out.WriteString(cell)
			if i < len(cells)-1 {
				out.WriteString(strings.Repeat(" ", widths[i]-cellsOf(cell)+gap))
			}
		}
		out.WriteByte('\n')
	}
	put(c.w, text(out.String()))
	return nil
}

// shorten replaces ids of threads, which commands take by their beginning, where nothing else fits.
func shorten(rows [][]string, widths []int) {
	at := slices.Index(rows[0], "THREAD")
	if at < 0 {
		return
	}
	var ids []string
	for _, cells := range rows[1:] {
		if at < len(cells) && thole.ValidUUID(cells[at]) {
			ids = append(ids, cells[at])
		}
	}
	short, n := beginnings(ids), 0
	widths[at] = len("THREAD")
	for _, cells := range rows[1:] {
		if at < len(cells) && thole.ValidUUID(cells[at]) {
			cells[at] = short[n]
			n++
		}
		if at < len(cells) {
			widths[at] = max(widths[at], cellsOf(cells[at]))
		}
	}
}

// breadth is how wide a row is.
func breadth(widths []int) int {
	total := -gap
	for _, w := range widths {
		total += w + gap
	}
	return total
}

// fit narrows the widest columns until a row is at most limit wide.
func fit(widths []int, kept []bool, limit int) {
	total := breadth(widths)
	for limit > 0 && total > limit {
		widest := -1
		for i, w := range widths {
			if !kept[i] && w > narrow && (widest < 0 || w >= widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
		total--
	}
}

// cellsOf is how wide a terminal shows a text.
func cellsOf(s string) (n int) {
	for _, r := range s {
		n += cellsOfRune(r)
	}
	return n
}

func cellsOfRune(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cut shortens a text to at most so many cells, and shows that it did.
func cut(s string, limit int) string {
	if cellsOf(s) <= limit {
		return s
	}
	n := 0
	for i, r := range s {
		if n += cellsOfRune(r); n > limit-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// ttyWidth reports whether w is a terminal, and how wide it is.
func ttyWidth(w io.Writer) (columns int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile {
		return 0, false
	}
	if _, err := unix.IoctlGetTermios(int(f.Fd()), getTermios); err != nil {
		return 0, false
	}
	if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
		columns = int(size.Col)
	}
	return columns, true
}
