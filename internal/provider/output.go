package provider

import "unicode/utf8"

// OutputLimit bounds what an item keeps of a command's or tool's output; half of
// it is the beginning, half the end.
const OutputLimit = 64 << 10

// Output keeps the beginning and the end of a long text and counts what it
// dropped between. The zero value is ready.
type Output struct {
	head, tail []byte
	total      int64
}

// Write adds text.
func (o *Output) Write(s string) {
	o.total += int64(len(s))
	const half = OutputLimit / 2
	if room := half - len(o.head); room > 0 {
		n := min(room, len(s))
		o.head = append(o.head, s[:n]...)
		s = s[n:]
	}
	if len(s) > half {
		s = s[len(s)-half:]
	}
	if len(o.tail)+len(s) > 2*half { // cut rarely, so that small writes stay cheap
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-(half-len(s)):]...)
	}
	o.tail = append(o.tail, s...)
}

// Total is how many bytes were written.
func (o *Output) Total() int64 { return o.total }

// Text returns what was kept, as valid UTF-8, and how many bytes were cut from
// the middle.
func (o *Output) Text() (string, int64) {
	const half = OutputLimit / 2
	head, tail := o.head, o.tail
	if len(tail) > half {
		tail = tail[len(tail)-half:]
	}
	if int64(len(head)+len(tail)) < o.total { // something is missing: cut at runes
		for len(head) > 0 && !utf8.Valid(head[max(0, len(head)-utf8.UTFMax):]) && cutRune(head) {
			head = head[:len(head)-1]
		}
		for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
	}
	return string(head) + string(tail), o.total - int64(len(head)+len(tail))
}

// cutRune says whether b ends inside a rune.
func cutRune(b []byte) bool {
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			return !utf8.FullRune(b[len(b)-i:])
		}
	}
	return false
}

// Bound is Output for a text that is known whole.
func Bound(s string) (string, int64) {
	if len(s) <= OutputLimit {
		return s, 0
	}
	var o Output
	o.Write(s)
	return o.Text()
}
