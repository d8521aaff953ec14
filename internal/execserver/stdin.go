//go:build linux

package execserver

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/protocol/exec"
)

var past = time.Unix(1, 0)

const (
	stdinChunks = 128      // accepted and not yet written
	stdinParked = 16 << 20 // bytes whose requests wait for room
	writeIDs    = 4096     // remembered per process
)

// stdinQueue writes to a process in arrival order from a goroutine of its own,
// started by the first write.
type stdinQueue struct {
	file *os.File
	room *budget

	mu     sync.Mutex // guards the rest
	queue  [][]byte
	parked []parkedWrite // requests that wait for room, in order
	held   int           // bytes parked
	seen   map[string]struct{}
	ids    int64    // bytes of seen
	order  []string // ring of seen
	next   int
	active bool
	last   bool // no more comes: the pipe is closed after the queue
	broken bool // the process closed its end
	ended  bool // the process exited: writes are accepted and go nowhere
}

type parkedWrite struct {
	req  *jsonrpc.Request
	data []byte
}

func newStdinQueue(f *os.File, room *budget) *stdinQueue {
	return &stdinQueue{file: f, room: room, seen: map[string]struct{}{}}
}

var accepted = exec.WriteResult{Status: exec.WriteAccepted}

// write takes a chunk and answers req when it is queued. After the last one nothing is
// taken.
func (q *stdinQueue) write(req *jsonrpc.Request, id string, data []byte, last bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, dup := q.seen[id]; dup || q.ended {
		_ = req.Reply(accepted)
		return
	}
	if q.last {
		_ = req.Reply(exec.WriteResult{Status: exec.WriteStdinClosed})
		return
	}
	if q.broken {
		_ = req.Error(jsonrpc.Errorf(exec.CodeInternal, "failed to write to process stdin"))
		return
	}
	full := len(q.queue) >= stdinChunks
	if full && q.held+len(data) > stdinParked || !q.room.take(int64(len(data)+len(id))) {
		_ = req.Error(jsonrpc.Overloaded())
		return
	}
	if full {
		q.remember(id)
		q.last = last
		q.parked = append(q.parked, parkedWrite{req, data})
		q.held += len(data)
		return
	}
	q.remember(id)
	if q.last = last; len(data) > 0 {
		q.queue = append(q.queue, data)
	}
	if (len(data) > 0 || last) && !q.active {
		q.active = true
		go q.run()
	}
	_ = req.Reply(accepted)
}

func (q *stdinQueue) remember(id string) {
	q.seen[id] = struct{}{}
	q.ids += int64(len(id))
	if len(q.order) < writeIDs {
		q.order = append(q.order, id)
		return
	}
	old := q.order[q.next]
	delete(q.seen, old)
	q.ids -= int64(len(old))
	q.room.give(int64(len(old)))
	q.order[q.next] = id
	q.next = (q.next + 1) % writeIDs
}

// run writes until the queue is empty. The process's exit closes the file, which
// ends a write that would wait for ever.
func (q *stdinQueue) run() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue) > 0 && !q.broken && !q.ended {
		data := q.queue[0]
		q.mu.Unlock()
		_, err := q.file.Write(data)
		q.mu.Lock()
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			q.broken = true
			break
		}
		q.queue[0] = nil
		q.queue = q.queue[1:]
		q.room.give(int64(len(data)))
		if len(q.parked) > 0 {
			w := q.parked[0]
			q.parked = q.parked[1:]
			q.held -= len(w.data)
			q.queue = append(q.queue, w.data)
			_ = w.req.Reply(accepted)
		}
	}
	if q.active = false; q.last && !q.ended {
		_ = q.file.Close()
	}
	q.drop()
}

// drop answers what can no longer be written. It is called with mu held.
func (q *stdinQueue) drop() {
	if !q.broken && !q.ended {
		return
	}
	for _, data := range q.queue {
		q.room.give(int64(len(data)))
	}
	q.queue = nil
	for _, w := range q.parked {
		q.room.give(int64(len(w.data)))
		if q.ended {
			_ = w.req.Reply(accepted)
		} else {
			_ = w.req.Error(jsonrpc.Errorf(exec.CodeInternal, "failed to write to process stdin"))
		}
	}
	q.parked, q.held = nil, 0
}

// forget is called when the process can no longer be written to by its id.
func (q *stdinQueue) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.room.give(q.ids)
	q.ids, q.seen, q.order = 0, map[string]struct{}{}, nil
}

// end is called when the process has exited.
func (q *stdinQueue) end(shared bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	_ = q.file.SetWriteDeadline(past)
	if !shared {
		_ = q.file.Close()
	}
	if !q.active {
		q.drop()
	}
}
