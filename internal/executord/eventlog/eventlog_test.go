package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func create(t *testing.T) *Log {
	t.Helper()
	l, err := Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func all(t *testing.T, l *Log, after uint64) (out []string) {
	t.Helper()
	l.Seal()
	for {
		recs, err := l.Read(t.Context(), after)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range recs {
			if r.Cursor != after+1 {
				t.Fatalf("cursor %d after %d", r.Cursor, after)
			}
			after = r.Cursor
			out = append(out, string(r.Data))
		}
	}
}

// Whatever a crash leaves of the last, un-synced write, everything acknowledged
// before is read back and nothing invented.
func TestATornTailIsCutOff(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		path := filepath.Join(t.TempDir(), "log")
		l, err := Create(path)
		if err != nil {
			rt.Fatal(err)
		}
		var want []string
		for i := range rapid.IntRange(0, 20).Draw(rt, "records") {
			rec := fmt.Sprintf("%d-%s", i, rapid.StringN(0, 200, -1).Draw(rt, "rec"))
			if err := l.Append(context.Background(), true, []byte(rec)); err != nil {
				rt.Fatal(err)
			}
			want = append(want, rec)
		}
		l.Close()
		whole, _ := os.ReadFile(path)
		l2, _ := Open(path)
		_ = l2.Append(context.Background(), false, bytes.Repeat([]byte("x"), 300))
		l2.Close()
		torn, _ := os.ReadFile(path)
		cut := rapid.IntRange(len(whole), len(torn)-1).Draw(rt, "cut")
		tail := bytes.Clone(torn[:cut])
		if len(tail) > len(whole) && rapid.Bool().Draw(rt, "garble") {
			tail[len(tail)-1] ^= 0xff
		}
		if err := os.WriteFile(path, tail, 0o600); err != nil {
			rt.Fatal(err)
		}
		l3, err := Open(path)
		if err != nil {
			rt.Fatal(err)
		}
		defer l3.Close()
		if got := all(t, l3, 0); fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestReadersFollowAndStartAnywhere(t *testing.T) {
	l := create(t)
	const n = 3000
	got := make(chan []string)
	for _, after := range []uint64{0, 0} {
		go func() { got <- follow(l, after) }()
	}
	for i := range n {
		if err := l.Append(t.Context(), i%100 == 0, fmt.Appendf(nil, "%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	l.Seal()
	for range 2 {
		if r := <-got; len(r) != n || r[0] != "0" || r[n-1] != fmt.Sprint(n-1) {
			t.Fatalf("read %d of %d", len(r), n)
		}
	}
	if r := all(t, l, n-2); len(r) != 2 {
		t.Fatalf("from the middle: %q", r)
	}
	if _, err := l.Read(t.Context(), n+1); err == nil {
		t.Fatal("a cursor from the future was accepted")
	}
}

func follow(l *Log, after uint64) (out []string) {
	for {
		recs, err := l.Read(context.Background(), after)
		if err != nil {
			return out
		}
		for _, r := range recs {
			after = r.Cursor
			out = append(out, string(r.Data))
		}
	}
}

func TestAppendWaitsForItsReader(t *testing.T) {
	l := create(t)
	big := make([]byte, 4<<20)
	for range Limit / len(big) {
		if err := l.Append(t.Context(), false, big); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := l.Append(ctx, false, []byte("x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a full log took more: %v", err)
	}
	l.Ack(1)
	if err := l.Append(t.Context(), false, []byte("x")); err != nil {
		t.Fatal(err)
	}
}

// A log that failed and was sealed ends for its readers, after what it has: they
// would ask for the rest for ever.
func TestAFailedLogEnds(t *testing.T) {
	l := create(t)
	if err := l.Append(t.Context(), true, []byte("a")); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), true, make([]byte, maxRecord+1)); err == nil {
		t.Fatal("a record beyond the limit was taken")
	}
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	good := l.file
	l.file = full
	if err := l.Append(t.Context(), true, []byte("b")); err == nil {
		t.Fatal("a full disk took a record")
	}
	l.file = good
	full.Close()
	if got := all(t, l, 0); len(got) != 1 || got[0] != "a" {
		t.Fatalf("read %q", got)
	}
}

// What a disk cannot read now it may read later, so it is not cut off.
func TestALogThatCannotBeReadIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	whole, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(whole.Append(t.Context(), true, []byte("said")), whole.Close()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	blind, err := os.OpenFile(path, os.O_WRONLY, 0) // it may be cut off, but not read
	if err != nil {
		t.Fatal(err)
	}
	defer blind.Close()
	if err := (&Log{file: blind}).recover(); err == nil {
		t.Error("a log that cannot be read was taken for whole")
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("%d bytes of %d are left, %v", len(after), len(before), err)
	}
}
