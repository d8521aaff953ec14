//go:build linux

package execserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/protocol/exec"
)

// process is one managed process and its output.
//
//	running → exited → closed → forgotten (RetainClosed later)
//
// exited: the direct child is reaped. closed: exited, and both output streams at
// their end. Output, exited and closed take numbers from one sequence and are
// queued to the connection in that order.
type process struct {
	ses       *session
	id        string
	sandboxed bool
	stays     *sandbox.Stays // nil without a sandbox
	tty       bool
	quoted    []byte // the id as JSON

	// emit serialises numbering and queueing. It is held while a slow connection
	// blocks the process, so nothing else may need it. Lock order: emit, mu.
	emit sync.Mutex

	mu       sync.Mutex // guards the rest
	pid      int        // also its process group and session
	reaped   bool
	seq      uint64
	kept     retention
	open     int // output streams not at their end
	exited   bool
	closed   bool
	closedAt time.Time
	code     int
	denied   bool
	changed  chan struct{} // closed at the next change; nil without a waiter
	drop     *time.Timer

	streams []*outStream
	stdin   *stdinQueue   // nil: not writable
	ptmx    *os.File      // the terminal, nil without one
	gone    chan struct{} // with a terminal: closed when the process is closed
}

func newProcess(ses *session, id string) *process {
	quoted, _ := json.Marshal(id)
	return &process{ses: ses, id: id, quoted: quoted}
}

// output numbers, retains and sends one chunk.
func (p *process) output(st stream, chunk []byte) {
	p.emit.Lock()
	defer p.emit.Unlock()
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	seq, c := p.next()
	before := p.kept.size()
	p.kept.add(seq, st, chunk)
	over := p.ses.held.kept.count(p.kept.size() - before)
	p.mu.Unlock()
	if over > 0 {
		p.ses.shed()
	}
	if c == nil {
		return
	}
	size := base64.StdEncoding.EncodedLen(len(chunk)) + len(p.quoted) + 112
	_ = c.rpc.NotifyRaw(context.Background(), size, func(b []byte) []byte {
		b = append(b, `{"method":"process/output","params":{"processId":`...)
		b = append(b, p.quoted...)
		b = append(b, `,"seq":`...)
		b = strconv.AppendUint(b, seq, 10)
		b = append(b, `,"stream":"`...)
		b = append(b, st.name()...)
		b = append(b, `","chunk":"`...)
		b = base64.StdEncoding.AppendEncode(b, chunk)
		return append(b, `"}}`...)
	})
}

// dropKept forgets the output that was kept. It is called with mu held.
func (p *process) dropKept() {
	p.ses.held.kept.give(p.kept.size())
	p.kept = retention{}
}

// next takes a sequence number, wakes readers and returns where to send.
func (p *process) next() (uint64, *conn) {
	p.seq++
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
	return p.seq, p.ses.conn.Load()
}

// exit records the end of the direct child.
func (p *process) exit(code int, denied bool) {
	p.emit.Lock()
	defer p.emit.Unlock()
	p.mu.Lock()
	p.exited, p.code, p.denied = true, code, denied
	seq, c := p.next()
	p.mu.Unlock()
	if c != nil {
		_ = c.rpc.NotifyRaw(context.Background(), 160+len(p.quoted), func(b []byte) []byte {
			b = append(b, `{"method":"process/exited","params":{"processId":`...)
			b = append(b, p.quoted...)
			b = append(b, `,"seq":`...)
			b = strconv.AppendUint(b, seq, 10)
			b = append(b, `,"exitCode":`...)
			b = strconv.AppendInt(b, int64(code), 10)
			b = append(b, `,"sandboxDenied":`...)
			b = strconv.AppendBool(b, denied)
			return append(b, `}}`...)
		})
	}
	p.closeIfDone()
}

// streamEnded records the end of one output stream.
func (p *process) streamEnded() {
	p.emit.Lock()
	defer p.emit.Unlock()
	p.mu.Lock()
	p.open--
	if p.changed != nil { // the exit may wait for the last words
		close(p.changed)
		p.changed = nil
	}
	p.mu.Unlock()
	p.closeIfDone()
}

// closeIfDone is called with emit held.
func (p *process) closeIfDone() {
	p.mu.Lock()
	if !p.exited || p.open > 0 || p.closed {
		p.mu.Unlock()
		return
	}
	p.closed, p.closedAt = true, time.Now()
	seq, c := p.next()
	p.drop = time.AfterFunc(p.ses.srv.cfg.RetainClosed, func() { p.ses.drop(p) })
	p.mu.Unlock()
	if p.gone != nil {
		close(p.gone)
	}
	if c != nil {
		_ = c.rpc.NotifyRaw(context.Background(), 96+len(p.quoted), func(b []byte) []byte {
			b = append(b, `{"method":"process/closed","params":{"processId":`...)
			b = append(b, p.quoted...)
			b = append(b, `,"seq":`...)
			b = strconv.AppendUint(b, seq, 10)
			return append(b, `}}`...)
		})
	}
}

// signal sends a signal to the process group while its leader is unreaped, so
// that the number cannot have become another's.
func (p *process) signal(sig unix.Signal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid == 0 || p.reaped {
		return false
	}
	_ = unix.Kill(-p.pid, sig)
	return true
}

// terminate kills the group and ends its output at once: unread output is lost.
// It reports whether the process was running. It never waits.
func (p *process) terminate() bool {
	running := p.signal(unix.SIGKILL)
	p.mu.Lock()
	open := p.open > 0
	reaped, pid := p.reaped, p.pid
	streams := p.streams
	p.mu.Unlock()
	if reaped && open {
		killLeftover(pid)
	}
	for _, s := range streams {
		s.abort()
	}
	return running
}

// forget stops the timer that frees the id, when the session ends first.
func (p *process) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drop != nil {
		p.drop.Stop()
	}
}

// wait returns a channel closed at the next change. It is called with mu held.
func (p *process) wait() <-chan struct{} {
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed
}

// read answers process/read and whether that answer is final: with output, at
// the end, or with an exit the reader has not seen.
func (p *process) read(params *exec.ReadParams) (exec.ReadResult, bool, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var after uint64
	if params.AfterSeq != nil {
		after = *params.AfterSeq
	}
	res := exec.ReadResult{
		Chunks:  p.kept.after(after, params.MaxBytes),
		NextSeq: p.seq + 1, Exited: p.exited, Closed: p.closed, SandboxDenied: p.denied,
	}
	if params.MaxBytes != nil && len(res.Chunks) > 0 {
		res.NextSeq = res.Chunks[len(res.Chunks)-1].Seq + 1
	}
	if p.exited {
		code := p.code
		res.ExitCode = &code
	}
	if len(res.Chunks) > 0 || p.closed || p.exited && after < p.seq {
		return res, true, nil
	}
	return res, false, p.wait()
}

// deniedWords mark output of a program that ran into its sandbox.
var deniedWords = [][]byte{
	[]byte("operation not permitted"), []byte("permission denied"), []byte("read-only file system"),
	[]byte("seccomp"), []byte("sandbox"), []byte("landlock"), []byte("failed to write file"),
}

// lastWords is how long a sandboxed process's exit waits for its output.
const lastWords = 20 * time.Millisecond

// judge decides whether the sandbox stopped a process that failed. It is a guess
// by what the program said, as clients expect it.
func (p *process) judge(code int) bool {
	if !p.sandboxed || code == 0 {
		return false
	}
	deadline := time.NewTimer(lastWords)
	defer deadline.Stop()
	for {
		p.mu.Lock()
		said := bytes.ToLower(p.kept.text())
		open := p.open
		ch := p.wait()
		p.mu.Unlock()
		for _, w := range deniedWords {
			if bytes.Contains(said, w) {
				return true
			}
		}
		if open == 0 {
			break
		}
		select {
		case <-ch:
			continue
		case <-deadline.C:
		}
		break
	}
	return code == 128+int(unix.SIGSYS)
}
