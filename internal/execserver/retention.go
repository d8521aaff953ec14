package execserver

import (
	"unsafe"

	"github.com/tholehq/thole/protocol/exec"
)

// retention keeps the newest output of one process: at most exec.RetainedBytes
// and exec.RetainedChunks, whole chunks evicted from the front. Bytes live in one
// ring that grows with use, so a busy process makes no garbage and an idle one
// costs nothing.
type retention struct {
	data  []byte // ring; len is its capacity
	start int    // offset of the oldest byte
	used  int

	index []mark // ring of chunks
	first int
	count int
}

// mark is one retained chunk; its bytes follow those of the chunk before it.
type mark struct {
	seq    uint64
	size   int32
	stream stream
}

// size is how many bytes the rings take.
func (r *retention) size() int64 {
	return int64(len(r.data)) + int64(len(r.index))*int64(unsafe.Sizeof(mark{}))
}

// add appends a chunk; a chunk larger than the window keeps no bytes at all and
// is not retained.
func (r *retention) add(seq uint64, st stream, chunk []byte) {
	if len(chunk) > exec.RetainedBytes {
		r.clear()
		return
	}
	for r.count > 0 && (r.used+len(chunk) > exec.RetainedBytes || r.count == exec.RetainedChunks) {
		r.evict()
	}
	r.reserve(len(chunk))
	at := (r.start + r.used) % len(r.data)
	n := copy(r.data[at:], chunk)
	copy(r.data, chunk[n:])
	r.used += len(chunk)
	r.index[(r.first+r.count)%len(r.index)] = mark{seq, int32(len(chunk)), st}
	r.count++
}

func (r *retention) evict() {
	m := r.index[r.first]
	r.first = (r.first + 1) % len(r.index)
	r.count--
	r.start = (r.start + int(m.size)) % len(r.data)
	r.used -= int(m.size)
}

func (r *retention) clear() { r.count, r.used = 0, 0 }

// reserve makes room for n more bytes and one more chunk, doubling the rings.
func (r *retention) reserve(n int) {
	if r.used+n > len(r.data) || len(r.data) == 0 {
		grown := make([]byte, min(exec.RetainedBytes, max(512, 2*len(r.data), ceil2(r.used+n))))
		k := copy(grown, r.data[r.start:min(len(r.data), r.start+r.used)])
		copy(grown[k:], r.data[:r.used-k])
		r.data, r.start = grown, 0
	}
	if r.count == len(r.index) {
		grown := make([]mark, max(4, 2*len(r.index)))
		for i := range r.count {
			grown[i] = r.index[(r.first+i)%len(r.index)]
		}
		r.index, r.first = grown, 0
	}
}

func ceil2(n int) int {
	c := 1
	for c < n {
		c *= 2
	}
	return c
}

// after returns the chunks with a higher sequence number, oldest first. With a
// budget it stops before exceeding it, but returns one chunk if there is one.
func (r *retention) after(seq uint64, budget *uint64) []exec.Chunk {
	out := []exec.Chunk{}
	at := r.start
	var total uint64
	for i := range r.count {
		m := r.index[(r.first+i)%len(r.index)]
		if m.seq > seq {
			if budget != nil && len(out) > 0 && total+uint64(m.size) > *budget {
				break
			}
			buf := make([]byte, m.size)
			n := copy(buf, r.data[at:])
			copy(buf[n:], r.data)
			out = append(out, exec.Chunk{Seq: m.seq, Stream: m.stream.name(), Chunk: buf})
			total += uint64(m.size)
			if budget != nil && total >= *budget {
				break
			}
		}
		if len(r.data) > 0 {
			at = (at + int(m.size)) % len(r.data)
		}
	}
	return out
}

// text returns all retained bytes.
func (r *retention) text() []byte {
	buf := make([]byte, r.used)
	n := copy(buf, r.data[r.start:min(len(r.data), r.start+r.used)])
	copy(buf[n:], r.data)
	return buf
}

// stream names where output came from.
type stream uint8

const (
	stdout stream = iota
	stderr
	terminal
)

func (s stream) name() string {
	switch s {
	case stderr:
		return exec.StreamStderr
	case terminal:
		return exec.StreamPTY
	}
	return exec.StreamStdout
}
