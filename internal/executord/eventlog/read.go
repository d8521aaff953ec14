package eventlog

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// batchBytes bounds what one Read returns, so that a reader that lags catches up
// in pieces.
const batchBytes = 1 << 20

// Read returns the records after the cursor, at least one. It waits for one if
// there is none yet; io.EOF means that the log is sealed and the cursor is at its
// end.
func (l *Log) Read(ctx context.Context, after uint64) ([]Record, error) {
	for {
		l.mu.Lock()
		end := uint64(len(l.offsets) - 1)
		err, sealed, changed := l.err, l.sealed, l.changed
		var from, to int64
		var last uint64
		if after < end {
			last = after
			from = l.offsets[after]
			for last < end && (last == after || l.offsets[last+1]-from <= batchBytes) {
				last++
			}
			to = l.offsets[last]
		}
		l.mu.Unlock()
		switch {
		case after > end:
			return nil, fmt.Errorf("eventlog: cursor %d is beyond the end %d", after, end)
		case after < end:
			return l.readRange(after, last, from, to)
		case sealed: // also one that failed: nothing will ever follow
			return nil, io.EOF
		case err != nil:
			return nil, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (l *Log) readRange(after, last uint64, from, to int64) ([]Record, error) {
	buf := make([]byte, to-from)
	if _, err := l.file.ReadAt(buf, from); err != nil {
		return nil, fmt.Errorf("read event log: %w", err)
	}
	out := make([]Record, 0, last-after)
	for cursor := after + 1; len(buf) > 0; cursor++ {
		n := binary.BigEndian.Uint32(buf)
		data := buf[headerSize : headerSize+n]
		if crc32.Checksum(data, castagnoli) != binary.BigEndian.Uint32(buf[4:]) {
			return nil, fmt.Errorf("eventlog: record %d is damaged", cursor)
		}
		out = append(out, Record{Cursor: cursor, Data: data})
		buf = buf[headerSize+n:]
	}
	return out, nil
}
