package relay

import (
	"bytes"
	"math"
	"testing"

	"github.com/tholehq/thole/internal/relay/noise"
	"github.com/tholehq/thole/protocol/relay"
)

// pair is a stream's two ends in one direction.
func pair(t testing.TB) (*recordWriter, *recordReader) {
	t.Helper()
	a, errA := noise.NewIdentity()
	b, errB := noise.NewIdentity()
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	i, first, err := noise.NewInitiator(a, b.Public(), noise.Prologue{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := noise.NewResponder(b, noise.Prologue{}, first)
	if err != nil {
		t.Fatal(err)
	}
	second, _, in, err := r.Accept()
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := i.Finish(second)
	if err != nil {
		t.Fatal(err)
	}
	return &recordWriter{stream: "s", cipher: out}, &recordReader{cipher: in}
}

func sent(t testing.TB, w *recordWriter, msgs ...string) (out []*relay.Frame) {
	t.Helper()
	for _, m := range msgs {
		if err := w.write([]byte(m), func(frame []byte) error {
			f, err := relay.Parse(bytes.Clone(frame))
			out = append(out, f)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestRecordsInAnyOrder(t *testing.T) {
	w, r := pair(t)
	frames := sent(t, w, "zero", "one", "two", string(bytes.Repeat([]byte{'3'}, 2*maxPiece)))
	var got []string
	for _, n := range []int{2, 0, 0, 2, 1, 5, 3, 4, 3} {
		if err := r.read(frames[n].Seq, frames[n].Payload, func(m []byte) { got = append(got, string(m)) }); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 4 || got[0] != "zero" || got[1] != "one" || got[2] != "two" || len(got[3]) != 2*maxPiece || r.bytes != 0 {
		t.Fatalf("%d messages, %.20q, %d bytes kept", len(got), got, r.bytes)
	}
}

func TestRecordBounds(t *testing.T) {
	w, r := pair(t)
	none := func([]byte) { t.Error("a message") }
	if err := w.write(nil, nil); err == nil {
		t.Error("an empty message was sent")
	}
	if err := r.read(aheadRecords+1, make([]byte, 20), none); err == nil {
		t.Error("a record far ahead was kept")
	}
	var err error
	for seq := uint32(1); err == nil && seq <= aheadRecords; seq++ {
		err = r.read(seq, make([]byte, maxRecord), none)
	}
	if err == nil || r.bytes > aheadBytes+maxRecord {
		t.Errorf("%d bytes were kept out of order, %v", r.bytes, err)
	}
	for _, size := range []int{0, noise.Overhead, maxRecord + 1} {
		if (&recordReader{}).read(0, make([]byte, size), none) == nil {
			t.Errorf("a record of %d bytes was taken", size)
		}
	}
	// Announced and never sent: memory follows what came.
	var a recordReader
	if err := a.assemble([]byte{0x03, 0xff, 0xff, 0xff, 1}, none); err != nil || cap(a.buf) > 2*growth {
		t.Errorf("%d bytes for one, %v", cap(a.buf), err)
	}
	for _, head := range [][]byte{{0, 0, 0, 0}, {0x04, 0, 0, 1}} {
		if (&recordReader{}).assemble(head, none) == nil {
			t.Errorf("length %x was taken", head)
		}
	}
	w.seq = math.MaxUint32
	sent(t, w, "last")
	if err := w.write([]byte("more"), func([]byte) error { return nil }); err == nil {
		t.Error("sequence numbers began again")
	}
}

func FuzzAssemble(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 'x', 0, 0, 0, 2, 'a', 'b'}, 3)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, 1)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		var whole, parts [][]byte
		var a, b recordReader
		errA := a.assemble(data, func(m []byte) { whole = append(whole, m) })
		if cut < 0 || cut > len(data) {
			cut = len(data) / 2
		}
		errB := b.assemble(data[:cut], func(m []byte) { parts = append(parts, m) })
		if errB == nil {
			errB = b.assemble(data[cut:], func(m []byte) { parts = append(parts, m) })
		}
		if (errA == nil) != (errB == nil) || !bytes.Equal(bytes.Join(whole, []byte{0}), bytes.Join(parts, []byte{0})) {
			t.Fatalf("%q %v, in two parts %q %v", whole, errA, parts, errB)
		}
	})
}
