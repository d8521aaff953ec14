// Package eventlog is executord's durable, cursor-readable log of provider
// events: one append-only file per turn. What Append acknowledged with Sync
// survives a crash of executord and of the machine; a torn tail is cut off on
// open. A reader names the cursor it has and gets everything after it, as often
// as it likes. The log knows nothing of what the events mean.
//
// It is bounded: past Limit unacknowledged bytes Append waits, which slows the
// agent down instead of losing what it said.
package eventlog

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
)

// Limit is how many bytes of one turn may wait for their reader.
const Limit = 64 << 20

// MaxAppend bounds a new record. Its reader refuses a line of 8 MiB.
const MaxAppend = 8<<20 - 4<<10

// maxRecord bounds one record, so that a damaged length cannot ask for memory.
const maxRecord = 32 << 20

const headerSize = 8 // length, crc32c of the payload

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrClosed is returned by a log that was closed or removed.
var ErrClosed = errors.New("eventlog: closed")

// Record is one entry; cursors count from 1 without a gap.
type Record struct {
	Cursor uint64
	Data   []byte
}

// Log is one turn's log. Append has one caller; everything else is safe for
// concurrent use.
type Log struct {
	path string
	file *os.File

	mu      sync.Mutex // guards what follows
	offsets []int64    // offsets[i] is where record i+1 begins; last is the end
	synced  uint64     // records known to be on disk
	acked   uint64
	sealed  bool // the turn is over, no record will follow
	err     error
	changed chan struct{} // closed and replaced at every change
}

// Create makes the log at path, where none may be. The first record that is
// synced takes the new file to the disk with it.
func Create(path string) (*Log, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &Log{path: path, file: f, offsets: []int64{0}, changed: make(chan struct{})}, nil
}

// Open opens the log at path and cuts off a torn tail.
func Open(path string) (*Log, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	l := &Log{path: path, file: f, changed: make(chan struct{})}
	if err := l.recover(); err != nil {
		f.Close()
		return nil, fmt.Errorf("recover event log: %w", err)
	}
	return l, nil
}

// recover indexes the whole records and truncates after the last one. What cannot
// be read is not torn: only an end that comes too early and a sum that is wrong are.
func (l *Log) recover() error {
	r := bufio.NewReaderSize(l.file, 1<<20)
	var at int64
	l.offsets = []int64{0}
	var head [headerSize]byte
	var buf []byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			if !ended(err) {
				return err
			}
			break
		}
		n := binary.BigEndian.Uint32(head[:4])
		if n > maxRecord {
			break
		}
		if cap(buf) < int(n) {
			buf = make([]byte, n)
		}
		buf = buf[:n]
		if _, err := io.ReadFull(r, buf); err != nil && !ended(err) {
			return err
		} else if err != nil || crc32.Checksum(buf, castagnoli) != binary.BigEndian.Uint32(head[4:]) {
			break
		}
		at += headerSize + int64(n)
		l.offsets = append(l.offsets, at)
	}
	l.synced = uint64(len(l.offsets) - 1)
	size, err := l.file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return err
	}
	if err := l.file.Truncate(at); err != nil {
		return err
	}
	if _, err := l.file.Seek(at, io.SeekStart); err != nil {
		return err
	}
	return l.file.Sync()
}

func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// Append adds records in one write. With sync it returns when they are on disk;
// without, they are visible to readers but may be lost by a power failure.
func (l *Log) Append(ctx context.Context, sync bool, records ...[]byte) error {
	if err := l.waitForRoom(ctx); err != nil {
		return err
	}
	var buf []byte
	for _, rec := range records {
		if len(rec) > MaxAppend {
			return fmt.Errorf("eventlog: record of %d bytes is over the limit of %d", len(rec), MaxAppend)
		}
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(rec)))
		buf = binary.BigEndian.AppendUint32(buf, crc32.Checksum(rec, castagnoli))
		buf = append(buf, rec...)
	}
	_, err := l.file.Write(buf)
	if err == nil && sync {
		err = l.file.Sync()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		// A short write or a failed fsync leaves the file's state unknown: the log
		// takes nothing more, and the next Open finds the truth.
		l.err = fmt.Errorf("append to event log: %w", err)
		l.wakeLocked()
		return l.err
	}
	at := l.offsets[len(l.offsets)-1]
	for _, rec := range records {
		at += headerSize + int64(len(rec))
		l.offsets = append(l.offsets, at)
	}
	if sync {
		l.synced = uint64(len(l.offsets) - 1)
	}
	l.wakeLocked()
	return nil
}

func (l *Log) waitForRoom(ctx context.Context) error {
	for {
		l.mu.Lock()
		err, changed := l.err, l.changed
		waiting := l.offsets[len(l.offsets)-1] - l.offsets[l.acked]
		sealed := l.sealed
		l.mu.Unlock()
		switch {
		case err != nil:
			return err
		case sealed:
			return ErrClosed
		case waiting < Limit:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Seal says that no record will follow.
func (l *Log) Seal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sealed = true
	l.wakeLocked()
}

// Ack says that the reader has stored everything up to cursor.
func (l *Log) Ack(cursor uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end := uint64(len(l.offsets) - 1); cursor > end {
		cursor = end
	}
	if cursor > l.acked {
		l.acked = cursor
		l.wakeLocked()
	}
}

// End is the last cursor, and whether the log is sealed.
func (l *Log) End() (cursor uint64, sealed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(len(l.offsets) - 1), l.sealed
}

// Acked is the last acknowledged cursor.
func (l *Log) Acked() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked
}

// Close ends the log; the file stays.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.err == nil {
		l.err = ErrClosed
	}
	l.wakeLocked()
	l.mu.Unlock()
	return l.file.Close()
}

// Remove closes the log and deletes its file.
func (l *Log) Remove() error {
	if err := l.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return os.Remove(l.path)
}

func (l *Log) wakeLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}
