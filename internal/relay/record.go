package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tholehq/thole/internal/relay/noise"
	"github.com/tholehq/thole/protocol/relay"
)

const (
	maxMessage = 64 << 20
	maxPiece   = 61440 // plaintext of one record
	maxRecord  = maxPiece + noise.Overhead
	// aheadRecords and aheadBytes bound what arrived before what it follows.
	aheadRecords = 64
	aheadBytes   = 1 << 20
	// growth is how much of an announced message is allocated before it came.
	growth = 256 << 10
)

// recordWriter makes frames of messages. It is for one goroutine at a time: the
// records of two messages must not mix.
type recordWriter struct {
	stream string
	cipher *noise.Cipher
	seq    uint32
	ended  bool
	frame  []byte // reused
}

var errSequence = errors.New("relay: the stream has no sequence numbers left")

// write sends msg in as many frames as it needs.
func (w *recordWriter) write(msg []byte, send func(frame []byte) error) error {
	if len(msg) == 0 || len(msg) > maxMessage {
		return fmt.Errorf("relay: message of %d bytes: it may have 1 to %d", len(msg), maxMessage)
	}
	var head [4]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(msg)))
	prefix := head[:]
	for len(prefix)+len(msg) > 0 {
		if w.ended {
			return errSequence
		}
		part := min(len(msg), maxPiece-len(prefix))
		size := len(prefix) + part
		w.frame = relay.AppendData(w.frame[:0], w.stream, w.seq, size+noise.Overhead)
		at := len(w.frame)
		w.frame = append(append(w.frame, prefix...), msg[:part]...)
		sealed, err := w.cipher.Seal(w.frame[:at], w.frame[at:])
		if err != nil {
			return err
		}
		w.frame = sealed
		if err := send(sealed); err != nil {
			return err
		}
		prefix, msg = nil, msg[part:]
		w.ended = w.seq == math.MaxUint32
		w.seq++
	}
	return nil
}

// recordReader makes messages of the payloads of data frames. It is for one
// goroutine.
type recordReader struct {
	cipher *noise.Cipher
	next   uint64 // beyond 32 bits when all numbers came
	ahead  map[uint32][]byte
	bytes  int    // in ahead
	buf    []byte // the message that is coming, with its length before it
	plain  []byte // reused
}

// read takes a record and calls message for every message that it completes. The
// slice is the callee's. Records that came before are passed over: the first copy
// of a number counts.
func (r *recordReader) read(seq uint32, record []byte, message func([]byte)) error {
	switch {
	case len(record) <= noise.Overhead || len(record) > maxRecord:
		return fmt.Errorf("relay: record of %d bytes", len(record))
	case uint64(seq) < r.next:
		return nil
	case uint64(seq) == r.next:
	case uint64(seq) > r.next+aheadRecords:
		return fmt.Errorf("relay: record %d came when %d was due", seq, r.next)
	default:
		if _, ok := r.ahead[seq]; ok {
			return nil
		}
		if r.bytes += len(record); r.bytes > aheadBytes {
			return errors.New("relay: too much came out of order")
		}
		if r.ahead == nil {
			r.ahead = map[uint32][]byte{}
		}
		r.ahead[seq] = append([]byte(nil), record...)
		return nil
	}
	for {
		plain, err := r.cipher.Open(r.plain[:0], record)
		if err != nil {
			return err
		}
		r.plain = plain
		r.next++
		if err := r.assemble(plain, message); err != nil {
			return err
		}
		if r.next > math.MaxUint32 {
			return nil
		}
		var ok bool
		if record, ok = r.ahead[uint32(r.next)]; !ok {
			return nil
		}
		delete(r.ahead, uint32(r.next))
		r.bytes -= len(record)
	}
}

// size is how many bytes wait for what they are a part of.
func (r *recordReader) size() int64 { return int64(len(r.buf) + r.bytes) }

// assemble cuts the stream into messages. Memory grows with what came, not with
// what was announced.
func (r *recordReader) assemble(plain []byte, message func([]byte)) error {
	const head = 4
	for len(plain) > 0 {
		if missing := head - len(r.buf); missing > 0 {
			n := min(missing, len(plain))
			r.buf, plain = append(r.buf, plain[:n]...), plain[n:]
			if len(r.buf) < head {
				return nil
			}
			size := binary.BigEndian.Uint32(r.buf)
			if size == 0 || size > maxMessage {
				return fmt.Errorf("relay: message of %d bytes announced", size)
			}
			r.buf = append(make([]byte, 0, head+min(int(size), growth)), r.buf...)
		}
		whole := head + int(binary.BigEndian.Uint32(r.buf))
		n := min(whole-len(r.buf), len(plain))
		r.buf, plain = append(r.buf, plain[:n]...), plain[n:]
		if len(r.buf) == whole {
			message(r.buf[head:])
			r.buf = nil
		}
	}
	return nil
}
