package cli

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/tholehq/thole/internal/plain"
)

// All that commands print goes through put, putf and putln: a string that they are
// given is one line, no matter who wrote it, and what a terminal would obey or hide in it is
// shown. Our line ends are in formats, or in calls of their own. Env.Out and
// Env.Err show the same once more, for whatever else writes there.

// text is a string of several lines that others wrote.
type text string

// hang is a text whose further lines cannot be taken for our own.
func hang(s string) text { return text(strings.ReplaceAll(s, "\n", "\n  | ")) }

// theirs begins each line that others wrote and that stands alone. None of thole's
// begins so.
const theirs = "| "

// quote is a text of which every line is marked as not ours.
func quote(s string) text {
	marked, _ := quotePiece(strings.TrimSuffix(s, "\n"), true)
	return marked
}

// quotePiece is quote for a text that comes in pieces: fresh says whether a line
// begins here, and where the piece ends.
func quotePiece(s string, fresh bool) (marked text, endsFresh bool) {
	var b strings.Builder
	for line := range strings.SplitAfterSeq(s, "\n") {
		if line == "" && (b.Len() > 0 || !fresh) {
			continue
		}
		if fresh {
			b.WriteString(theirs)
		}
		b.WriteString(line)
		fresh = strings.HasSuffix(line, "\n")
	}
	return text(b.String()), fresh
}

// count is a number of things, of which one has no s.
func count[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func put(w io.Writer, args ...any)                 { fmt.Fprint(w, shown(args)...) }
func putln(w io.Writer, args ...any)               { fmt.Fprintln(w, shown(args)...) }
func putf(w io.Writer, format string, args ...any) { fmt.Fprintf(w, format, shown(args)...) }

// control sends a terminal a sequence that it obeys. Nothing that others wrote may be
// in it.
func control(tty io.Writer, sequence string) { _, _ = io.WriteString(tty, sequence) }

func shown(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		switch v := a.(type) {
		case text:
			out[i] = plain.Text(string(v))
		case error:
			out[i] = plain.Line(v.Error())
		case fmt.Stringer:
			out[i] = plain.Line(v.String())
		default:
			if out[i] = a; reflect.ValueOf(a).Kind() == reflect.String {
				out[i] = plain.Line(reflect.ValueOf(a).String())
			}
		}
	}
	return out
}

// bytes is where the contents of a file go that the user asked for: as they are, but
// shown to a person who looks at a terminal.
func (e *Env) bytes() io.Writer {
	if _, ok := ttyWidth(e.rawOut); ok {
		return e.Out
	}
	return e.rawOut
}
