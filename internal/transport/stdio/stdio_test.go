package stdio_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/transport/stdio"
)

func TestLines(t *testing.T) {
	big := `{"x":"` + strings.Repeat("y", 300<<10) + `"}`
	s := stdio.New(strings.NewReader("\n{\"a\":1}\r\n  \n"+big+"\n\r\n{\"b\":2}\nlast"), io.Discard, 0)
	for _, want := range []string{`{"a":1}`, big, `{"b":2}`, "last"} {
		if got, err := s.Read(t.Context()); err != nil || string(got) != want {
			t.Fatalf("got %.40q, %v", got, err)
		}
	}
	if _, err := s.Read(t.Context()); err != io.EOF {
		t.Fatal(err)
	}
}

func TestLimit(t *testing.T) {
	s := stdio.New(strings.NewReader(strings.Repeat("x", 100)+"\n"+strings.Repeat("y", 200<<10)+"\n"), io.Discard, 100<<10)
	if got, err := s.Read(t.Context()); err != nil || len(got) != 100 {
		t.Fatal(len(got), err)
	}
	if _, err := s.Read(t.Context()); !errors.Is(err, stdio.ErrTooLong) {
		t.Fatal(err)
	}
}

func TestWrite(t *testing.T) {
	var out bytes.Buffer
	s := stdio.New(strings.NewReader(""), &out, 0)
	if err := s.Write(t.Context(), []byte(`{"a":1}`)); err != nil || out.String() != "{\"a\":1}\n" {
		t.Fatal(err, out.String())
	}
	if s.Write(t.Context(), []byte("a\nb")) == nil {
		t.Fatal("a broken frame was written")
	}
}

func TestCloseUnblocksRead(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	s := stdio.New(r, io.Discard, 0)
	done := make(chan error, 1)
	go func() { _, err := s.Read(context.Background()); done <- err }()
	if err := s.Close("bye"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, io.ErrClosedPipe) {
		t.Fatal(err)
	}
}

// FuzzRead checks that the messages are the non-blank lines, whatever the
// chunking of the input.
func FuzzRead(f *testing.F) {
	f.Add([]byte("a\r\nb\n\n c \n\rd"), byte(3))
	f.Fuzz(func(t *testing.T, data []byte, chunk byte) {
		s := stdio.New(&chunked{data, int(chunk%16) + 1}, io.Discard, 64)
		var got, want []string
		var end error
		for {
			m, err := s.Read(t.Context())
			if err != nil {
				end = err
				break
			}
			got = append(got, string(m))
		}
		long := false
		for line := range strings.SplitSeq(string(data), "\n") {
			line = strings.TrimSuffix(line, "\r")
			if long = len(line) > 64; long {
				break
			}
			if strings.TrimSpace(line) != "" {
				want = append(want, line)
			}
		}
		if errors.Is(end, stdio.ErrTooLong) != long || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("got %q, %v; want %q, long %v", got, end, want, long)
		}
	})
}

type chunked struct {
	data []byte
	n    int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.n)], c.data)
	c.data = c.data[n:]
	return n, nil
}
