package workspace

import (
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	thole "github.com/tholehq/thole"
)

// MaxPack bounds the plain bytes of a compressed pack: what a reader has in memory.
const MaxPack = 16 << 20

const packWindow = 1 << 20

// Bytes is the size of an object's plain bytes.
func (o Object) Bytes() int64 {
	if o.Plain > 0 {
		return o.Plain
	}
	return o.Size
}

var encoders = sync.Pool{New: func() any {
	// Files have sums of their own; the level is the one that costs no time.
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithWindowSize(packWindow))
	if err != nil {
		panic("workspace: zstd: " + err.Error())
	}
	return e
}}

// Compress returns the stored form of a pack. Bytes that hardly shrink are stored as
// they are.
func Compress(plain []byte) (stored []byte, compressed bool) {
	e := encoders.Get().(*zstd.Encoder)
	defer encoders.Put(e)
	saves := func(out, in []byte) bool { return len(out) <= len(in)-len(in)/16 }
	if step := len(plain) / samples; step > sample { // a few samples show noise
		buf, worth := make([]byte, 0, 2*sample), false
		for at := 0; at+sample <= len(plain) && !worth; at += step {
			worth = saves(e.EncodeAll(plain[at:at+sample], buf), plain[at:at+sample])
		}
		if !worth {
			return plain, false
		}
	}
	out := e.EncodeAll(plain, make([]byte, 0, len(plain)/2))
	if !saves(out, plain) {
		return plain, false
	}
	return out, true
}

// A pack is worth compressing if one of so many samples is.
const (
	samples = 32
	sample  = 8 << 10
)

// Expand returns the plain bytes of a pack from what is stored of it. A pack that
// holds more or less than its tree says is damaged.
func (o Object) Expand(stored []byte) ([]byte, error) {
	if o.Plain == 0 {
		return stored, nil
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(o.Plain, packWindow))), zstd.WithDecoderMaxWindow(packWindow))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	plain, err := d.DecodeAll(stored, make([]byte, 0, o.Plain))
	if err == nil && int64(len(plain)) != o.Plain {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, thole.Errorf(thole.CodeInternal, "pack %s does not hold the %d bytes that its tree says: %w", o.ID, o.Plain, err)
	}
	return plain, nil
}
