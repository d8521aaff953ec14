package process

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func readLines(r io.Reader) ([]string, error) {
	l := NewLines(r)
	var out []string
	for {
		line, err := l.Next()
		if err != nil {
			return out, err
		}
		out = append(out, string(line))
	}
}

func TestLinesEqualSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.StringMatching(`[a-z ]{0,40}`), 0, 20).Draw(t, "lines")
		var in strings.Builder
		for i, s := range want {
			in.WriteString(strings.Repeat(s, rapid.SampledFrom([]int{1, 1, 1, 3000}).Draw(t, "repeat")))
			want[i] = in.String()[strings.LastIndexByte(in.String(), '\n')+1:]
			in.WriteString(rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end"))
		}
		var r io.Reader = strings.NewReader(in.String())
		if rapid.Bool().Draw(t, "slow") {
			r = iotest.HalfReader(r)
		}
		got, err := readLines(r)
		if !errors.Is(err, io.EOF) || strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
			t.Fatalf("got %d lines, want %d (%v)", len(got), len(want), err)
		}
	})
}

func TestLinesLastLineAndError(t *testing.T) {
	boom := errors.New("boom")
	got, err := readLines(io.MultiReader(strings.NewReader("a\nhalf"), iotest.ErrReader(boom)))
	if !errors.Is(err, boom) || strings.Join(got, "|") != "a|half" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestLinesGiveMemoryBack(t *testing.T) {
	long := bytes.Repeat([]byte{'x'}, 8<<20)
	l := NewLines(io.MultiReader(bytes.NewReader(long), strings.NewReader("\nshort\nend\n")))
	if line, err := l.Next(); err != nil || len(line) != len(long) {
		t.Fatalf("%d bytes, %v", len(line), err)
	}
	for range 2 {
		if _, err := l.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Next(); err != io.EOF {
		t.Fatal(err)
	}
	if cap(l.buf) > keepBuffer {
		t.Errorf("keeps %d bytes", cap(l.buf))
	}
}

// endless never writes a newline.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestALineWithoutEnd(t *testing.T) {
	got, err := readLines(io.MultiReader(strings.NewReader("a\n"), endless{}))
	if !errors.Is(err, ErrTooLong) || strings.Join(got, "|") != "a" {
		t.Errorf("got %d lines, %v", len(got), err)
	}
}
