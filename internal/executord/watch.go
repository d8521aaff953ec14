package executord

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/backoff"
	"github.com/tholehq/thole/internal/provider"
)

// Where no control group does, executord holds its boxes to their limits: it looks at
// what runs there. Of too much memory the largest process is killed, as the kernel would;
// with too many processes all boxes end, because nobody kills faster than they fork.
// What is faster than a look is held by a limit of the kernel's where one counts a box
// alone (see bind).
type watcher struct {
	halt func() // ends looking

	verdict sync.Mutex // is held while it is found out why boxes are ended; before seen
	seen    sync.Mutex // guards what follows
	hits    []hit      // the last of each kind
}

// hit is a limit that a box went beyond.
type hit struct {
	at    time.Time
	ended bool // the boxes, and with them every turn
	error thole.TurnError
	again string // why turns that it broke off are taken up again, "" if they are not
}

const (
	// lookEvery is how often a box is looked at in which something runs; quietEvery one
	// with nothing but its init.
	lookEvery  = 250 * time.Millisecond
	quietEvery = 2 * time.Second
)

func (b *boxes) begin() {
	if b.cfg.Processes == 0 && b.cfg.Memory == 0 {
		b.halt = func() {}
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	b.halt = func() { cancel(); <-done }
	go func() {
		defer close(done)
		for wait := lookEvery; backoff.Sleep(ctx, wait) == nil; {
			wait = b.look()
		}
	}()
}

// look counts what runs in the boxes and returns when to look again.
func (b *boxes) look() time.Duration {
	boxes := b.all()
	inits, spaces := map[int]bool{}, map[string]bool{}
	for _, w := range boxes {
		pid := w.Pid()
		if space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid)); err == nil {
			inits[pid], spaces[space] = true, true
		}
	}
	threads, memory, others := 0, int64(0), 0
	var largest member
	for _, m := range members(spaces) {
		threads += m.threads
		if memory += m.memory; inits[m.pid] {
			continue
		}
		if others++; m.memory > largest.memory {
			largest = m
		}
	}
	now := time.Now()
	if b.cfg.Processes > 0 && threads > b.cfg.Processes {
		b.note(hit{at: now, ended: true, error: thole.TurnError{Code: thole.ErrLimit, Message: fmt.Sprintf("the executor ran more than %d processes at a time; all were ended", b.cfg.Processes),
			Hint: "run fewer at a time, or raise executor.pids"}})
		for _, w := range boxes {
			w.Close()
		}
	}
	if b.cfg.Memory > 0 && memory > b.cfg.Memory && largest.pid > 0 {
		b.note(hit{at: now, error: thole.TurnError{Code: thole.ErrProviderCrashed, Message: "; the executor went beyond its memory limit",
			Hint: "raise executor.memory_mb, or ask for less at once"}})
		kill(largest.pid)
	}
	if others == 0 {
		return quietEvery
	}
	return lookEvery
}

func (w *watcher) note(h hit) {
	w.seen.Lock()
	defer w.seen.Unlock()
	w.hits = append(w.hits, h)
	if len(w.hits) > 8 {
		w.hits = w.hits[1:]
	}
}

// explain says of a turn's end that a limit brought it about.
func (b *boxes) explain(began time.Time, ev *event.Event) {
	if b == nil {
		return
	}
	b.verdict.Lock()
	defer b.verdict.Unlock()
	b.seen.Lock()
	defer b.seen.Unlock()
	for _, h := range b.hits {
		switch {
		case h.at.Before(began), h.again != "" && ev.Outcome == thole.OutcomeCompleted:
		case h.ended:
			e := h.error
			ev.Data = provider.Ended{Outcome: thole.OutcomeFailed, Error: &e}.Data()
		case ev.Error != nil && ev.Error.Code == h.error.Code:
			e := *ev.Error
			e.Message, e.Hint = e.Message+h.error.Message, h.error.Hint
			ev.Error = &e
		}
	}
}

// again says why a turn that failed is taken up again, "" if it is not: its box was ended,
// and nothing else was wrong.
func (b *boxes) again(began time.Time, end event.Event) (why string) {
	if b == nil || end.Kind != event.TurnEnded || end.Outcome != thole.OutcomeFailed {
		return ""
	}
	b.verdict.Lock()
	defer b.verdict.Unlock()
	b.seen.Lock()
	defer b.seen.Unlock()
	for _, h := range b.hits {
		if h.at.Before(began) || !h.ended {
			continue
		}
		if why = h.again; why == "" {
			return ""
		}
	}
	return why
}

// member is a process in a box.
type member struct {
	pid, threads int
	memory       int64 // its own, which is of no file
}

// members are the processes in process namespaces. Nobody inside can make another one.
func members(spaces map[string]bool) (all []member) {
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range names {
		if space, _ := os.Readlink(proc + "/ns/pid"); !spaces[space] {
			continue
		}
		m := member{threads: 1}
		m.pid, _ = strconv.Atoi(filepath.Base(proc))
		stat, err := os.ReadFile(proc + "/stat")
		if err != nil {
			continue // it ended
		}
		rest := stat[1+strings.LastIndexByte(string(stat), ')'):]
		if fields := strings.Fields(string(rest)); len(fields) > 17 {
			n, _ := strconv.Atoi(fields[17])
			m.threads = cmp.Or(n, 1)
		}
		var size, resident, shared int64
		if statm, err := os.ReadFile(proc + "/statm"); err == nil {
			_, _ = fmt.Sscan(string(statm), &size, &resident, &shared)
			m.memory = (resident - shared) * int64(os.Getpagesize())
		}
		all = append(all, m)
	}
	return all
}
