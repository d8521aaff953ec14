// Package plain makes text that others wrote safe to look at. A character that a
// terminal obeys, or that a reader cannot see, is shown as an escape: \u001b,
// \u202e. Escapes are those of JSON, so that a line of JSON stays that line. It does
// not judge what a text says.
package plain

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// hidden are the characters that are never shown as they are: controls, formats
// (bidi, zero width, tags), separators that are no line end, and whatever else is
// drawn as nothing. web/src/ui/plain.ts has the same rule.
var hidden = []*unicode.RangeTable{
	unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector,
}

// emoji follows a symbol that has a coloured form, in ordinary text.
const emoji = '\ufe0f'

func safe(r rune) bool {
	return r == emoji || !unicode.In(r, hidden...)
}

// Text is s for a place of many lines.
func Text(s string) string { return show(s, true) }

// Line is s for a place of one line.
func Line(s string) string { return show(s, false) }

func show(s string, lines bool) string {
	ok := func(r rune) bool { return safe(r) || lines && (r == '\n' || r == '\t') }
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !ok(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\ufffd`)
		case ok(r):
			b.WriteRune(r)
		case lines && r == '\r' && strings.HasPrefix(s[i:], "\n"): // the line end of other systems
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Writer passes on what is written to it as Text. What a write ends in the midst of
// waits for the next one, or for Flush. Safe for concurrent use.
type Writer struct {
	W io.Writer

	mu   sync.Mutex // guards rest
	rest []byte
}

// Write implements io.Writer.
func (w *Writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := b
	if len(w.rest) > 0 {
		all = append(w.rest, b...)
		w.rest = nil
	}
	cut := len(all)
	for back := 1; back <= min(utf8.UTFMax-1, len(all)); back++ {
		if c := all[len(all)-back]; utf8.RuneStart(c) {
			if !utf8.FullRune(all[len(all)-back:]) || c == '\r' && back == 1 {
				cut = len(all) - back
			}
			break
		}
	}
	w.rest = append(w.rest, all[cut:]...)
	if cut > 0 {
		if _, err := io.WriteString(w.W, Text(string(all[:cut]))); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// Flush writes what waits.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.rest
	w.rest = nil
	if len(rest) == 0 {
		return nil
	}
	_, err := io.WriteString(w.W, Text(string(rest)))
	return err
}
