package gateway

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// minSecret is the length from which a header's value may be a credential.
const minSecret = 8

// masked is an answer in which the credential of its request reads as asterisks: services
// repeat it in errors, and the answer goes into the executor and into records. The
// length stays. A piece waits for the next only while its end may begin a credential.
type masked struct {
	io.ReadCloser
	secrets [][]byte
	held    []byte // not yet known to be no credential
	out     []byte
	ready   []byte // of out
	err     error
}

// secretsOf returns what Sign put into the headers of a request, whole and without the
// scheme.
func secretsOf(h http.Header) (all [][]byte) {
	for name, values := range h {
		if up.passes(name) || name == "Accept-Encoding" || name == "Content-Type" {
			continue
		}
		for _, v := range values {
			if _, token, ok := strings.Cut(v, " "); ok {
				v = token
			}
			if len(v) >= minSecret {
				all = append(all, []byte(v))
			}
		}
	}
	return all
}

func (m *masked) Read(p []byte) (int, error) {
	for len(m.ready) == 0 {
		if m.err != nil {
			return 0, m.err
		}
		var n int
		n, m.err = m.ReadCloser.Read(p)
		m.held = append(m.held, p[:n]...)
		keep := 0
		for _, s := range m.secrets {
			for i := bytes.Index(m.held, s); i >= 0; i = bytes.Index(m.held, s) {
				copy(m.held[i:], bytes.Repeat([]byte{'*'}, len(s)))
			}
			if m.err == nil {
				keep = max(keep, begins(m.held, s))
			}
		}
		whole := len(m.held) - keep
		m.out = append(m.out[:0], m.held[:whole]...)
		m.held = append(m.held[:0], m.held[whole:]...)
		m.ready = m.out
	}
	n := copy(p, m.ready)
	m.ready = m.ready[n:]
	return n, nil
}

// begins returns how much of s the end of b has.
func begins(b, s []byte) int {
	for n := min(len(b), len(s)-1); n > 0; n-- {
		if bytes.HasSuffix(b, s[:n]) {
			return n
		}
	}
	return 0
}
