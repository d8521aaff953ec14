package repository

import (
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// Watch calls changed after names in the git directories of a place changed by which traps
// are set or guards lost, and once at the beginning. It returns when it watches.
func (g *Guards) Watch(changed func()) (stop func(), err error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "inotify")
	for git := range g.repositories {
		if _, err := unix.InotifyAddWatch(fd, git, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE|unix.IN_ONLYDIR); err != nil {
			f.Close()
			return nil, err
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		changed()
		buf := make([]byte, 64<<10)
		for {
			n, err := f.Read(buf)
			if err != nil {
				return
			}
			if concerns(buf[:n]) {
				changed()
			}
		}
	}()
	return func() { f.Close(); <-done }, nil
}

// watched are the names that matter.
var watched = map[string]bool{"commondir": true, "index": true, "config": true, "config.worktree": true, "hooks": true, "info": true, "modules": true, "worktrees": true, "gitdir": true}

// concerns reports whether one of the events is about such a name.
func concerns(events []byte) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		if binary.NativeEndian.Uint32(events[4:])&unix.IN_Q_OVERFLOW != 0 {
			return true
		}
		size := int(binary.NativeEndian.Uint32(events[12:]))
		if size > len(events)-unix.SizeofInotifyEvent {
			return true
		}
		name := unix.ByteSliceToString(events[unix.SizeofInotifyEvent : unix.SizeofInotifyEvent+size])
		if watched[name] || len(name) > len("sharedindex.") && name[:len("sharedindex.")] == "sharedindex." {
			return true
		}
		events = events[unix.SizeofInotifyEvent+size:]
	}
	return false
}
