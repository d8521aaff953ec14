package gateway

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

// TestEchoedCredential: a service that repeats the headers of a request sends the client
// nothing of the credential.
func TestEchoedCredential(t *testing.T) {
	for _, status := range []int{200, 400, 403, 500} {
		r := newRig(t, Chat)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			w.WriteHeader(status)
			key := q.Header.Get("Authorization")
			_, _ = io.WriteString(w, "bad key: "+key[:len(key)-4])
			_ = http.NewResponseController(w).Flush() // the rest comes in another piece
			_, _ = io.WriteString(w, key[len(key)-4:]+" of "+q.Header.Get("User-Agent"))
		}))
		defer s.Close()
		r.route.Upstreams = []Upstream{at(t, "echo", s.URL)}
		got := r.post(t, "User-Agent", "client/1.0")
		if want := "bad key: Bearer " + strings.Repeat("*", len(realKey)) + " of client/1.0"; got.status != status || got.body != want {
			t.Errorf("%+v", got)
		}
	}
}

func TestMask(t *testing.T) {
	secrets := secretsOf(http.Header{"Authorization": {"Bearer abcabcabd"}, "X-Api-Key": {"key-of-another-kind"}, "X-App": {"not a secret"}, "X-Short": {"1"}})
	for text, want := range map[string]string{
		"": "",
		"abcabcabcabd key-of-another-kindkey abcabcab": "abc********* *******************key abcabcab",
		"not a secret 1 abcabcabd\n":                   "not a secret 1 *********\n",
	} {
		for name, cut := range map[string]func(io.Reader) io.Reader{"whole": iotest.DataErrReader, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader} {
			m := &masked{ReadCloser: io.NopCloser(cut(strings.NewReader(text))), secrets: secrets}
			if got, err := io.ReadAll(m); err != nil || string(got) != want {
				t.Error(name, fmt.Sprintf("%q", got), err)
			}
		}
	}
}
