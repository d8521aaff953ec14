package process

import (
	"strings"
	"sync"
	"unicode"
)

const (
	tailBytes = 16 << 10
	tailLines = 20
)

// tail keeps the last bytes written to it.
type tail struct {
	secrets []string

	mu  sync.Mutex // guards buf
	buf []byte
}

func newTail(secrets []string) *tail {
	t := &tail{}
	for _, s := range secrets {
		if len(s) >= 4 { // shorter ones would blank out ordinary words
			t.secrets = append(t.secrets, s)
		}
	}
	return t
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if n > tailBytes {
		b = b[n-tailBytes:]
	}
	if over := len(t.buf) + len(b) - tailBytes; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	t.buf = append(t.buf, b...)
	return n, nil
}

// String returns the last lines without escape sequences, control characters and
// secrets.
func (t *tail) String() string {
	t.mu.Lock()
	s := string(t.buf)
	t.mu.Unlock()
	s = plain(s)
	for _, secret := range t.secrets {
		s = strings.ReplaceAll(s, secret, "[redacted]")
	}
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// plain drops terminal escape sequences and control characters.
func plain(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	esc := false
	for _, r := range s {
		switch {
		case esc:
			if unicode.IsLetter(r) || r == '\a' {
				esc = false
			}
		case r == '\x1b':
			esc = true
		case r == '\n' || r == '\t' || !unicode.IsControl(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}
