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

	mu     sync.Mutex // guards the rest
	queue  [][]byte
	parked []parkedWrite // requests that wait for room, in order
	held   int           // bytes parked
	seen   map[string]struct{}
	order  []string // ring of seen
	next   int
	active bool
	broken bool // the process closed its end
	ended  bool // the process exited: writes are accepted and go nowhere
}

type parkedWrite struct {
	req  *jsonrpc.Request
	data []byte
}

func newStdinQueue(f *os.File) *stdinQueue { return &stdinQueue{file: f, seen: map[string]struct{}{}} }

var accepted = exec.WriteResult{Status: exec.WriteAccepted}

// write takes a chunk and answers req when it is queued.
func (q *stdinQueue) write(req *jsonrpc.Request, id string, data []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, dup := q.seen[id]; dup || q.ended {
		_ = req.Reply(accepted)
		return
	}
	if q.broken {
		_ = req.Error(jsonrpc.Errorf(exec.CodeInternal, "failed to write to process stdin"))
		return
	}
	if len(q.queue) >= stdinChunks {
		if q.held+len(data) > stdinParked {
			_ = req.Error(jsonrpc.Overloaded())
			return
		}
		q.remember(id)
		q.parked = append(q.parked, parkedWrite{req, data})
		q.held += len(data)
		return
	}
	q.remember(id)
	if len(data) > 0 {
		q.queue = append(q.queue, data)
		if !q.active {
			q.active = true
			go q.run()
		}
	}
	_ = req.Reply(accepted)
}

func (q *stdinQueue) remember(id string) {
	q.seen[id] = struct{}{}
	if len(q.order) < writeIDs {
		q.order = append(q.order, id)
		return
	}
	delete(q.seen, q.order[q.next])
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
		if len(q.parked) > 0 {
			w := q.parked[0]
			q.parked = q.parked[1:]
			q.held -= len(w.data)
			q.queue = append(q.queue, w.data)
			_ = w.req.Reply(accepted)
		}
	}
	q.active = false
	q.drop()
}

// drop answers what can no longer be written. It is called with mu held.
func (q *stdinQueue) drop() {
	if !q.broken && !q.ended {
		return
	}
	q.queue = nil
	for _, w := range q.parked {
		if q.ended {
			_ = w.req.Reply(accepted)
		} else {
			_ = w.req.Error(jsonrpc.Errorf(exec.CodeInternal, "failed to write to process stdin"))
		}
	}
	q.parked, q.held = nil, 0
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
