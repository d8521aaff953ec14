package process

import (
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// trees are those whose root was not released yet; the reaper runs while there
// are any.
var trees struct {
	sync.Mutex
	live map[*tree]struct{}
	dead chan os.Signal // a child ended, or may have before its tree was known
	stop chan struct{}
	gone chan struct{}
}

// enlist makes the tree known to the reaper and starts it for the first one.
func (t *tree) enlist() {
	trees.Lock()
	defer trees.Unlock()
	if trees.live == nil {
		trees.live = map[*tree]struct{}{}
	}
	trees.live[t] = struct{}{}
	if len(trees.live) == 1 {
		trees.dead, trees.stop, trees.gone = make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
		signal.Notify(trees.dead, unix.SIGCHLD)
		go reapOrphans(trees.dead, trees.stop, trees.gone)
	}
	select {
	case trees.dead <- unix.SIGCHLD:
	default:
	}
}

// delist takes the tree from the reaper, and ends that after the last one.
func (t *tree) delist() {
	trees.Lock()
	delete(trees.live, t)
	var stop, gone chan struct{}
	if len(trees.live) == 0 {
		stop, gone = trees.stop, trees.gone
	}
	trees.Unlock()
	if stop != nil {
		close(stop)
		<-gone
	}
}

// reap collects the dead orphans of a tree whose root lives. One that is being
// killed is left to the killer.
func (t *tree) reap() {
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	l := newLook()
	for _, pid := range l.pids {
		if p := l.get(pid); p != nil && p.ppid == l.self && !p.alive() && t.orphan(p) {
			p.collect()
		}
	}
}

// reapOrphans collects orphans that end while their root lives. It never waits
// for a root (exec.Cmd does) nor for a child that carries no tag.
func reapOrphans(dead chan os.Signal, stop, gone chan struct{}) {
	defer close(gone)
	defer signal.Stop(dead)
	for {
		select {
		case <-stop:
			return
		case <-dead:
		}
		select { // one look serves a burst of deaths, and none disturbs a start
		case <-stop:
			return
		case <-time.After(200 * time.Millisecond):
		}
		trees.Lock()
		live := make([]*tree, 0, len(trees.live))
		for t := range trees.live {
			live = append(live, t)
		}
		trees.Unlock()
		for _, t := range live {
			t.reap()
		}
	}
}
