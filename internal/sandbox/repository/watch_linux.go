package repository

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

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
	watches := map[int32]map[string]bool{}
	for dir, names := range g.watched() {
		mask := uint32(unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_ONLYDIR | unix.IN_MASK_ADD)
		if names["index"] { // which may also be written where it is, and stay open
			mask |= unix.IN_CLOSE_WRITE | unix.IN_MODIFY
		}
		wd, err := unix.InotifyAddWatch(fd, dir, mask)
		if errors.Is(err, unix.EACCES) {
			continue // nor can an agent
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		if have := watches[int32(wd)]; have != nil { // by a link
			maps.Copy(names, have)
		}
		watches[int32(wd)] = names
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
			if concerns(buf[:n], watches) {
				changed()
			}
		}
	}()
	return func() { f.Close(); <-done }, nil
}

// watched are names in directories: those of guards, by which one is lost, and those by
// which traps are set.
func (g *Guards) watched() map[string]map[string]bool {
	dirs := map[string]map[string]bool{}
	add := func(dir string, names ...string) {
		if dirs[dir] == nil {
			dirs[dir] = map[string]bool{}
		}
		for _, name := range names {
			dirs[dir][name] = true
		}
	}
	for _, m := range g.Mounts {
		add(filepath.Dir(m.Path), filepath.Base(m.Path))
	}
	for _, d := range g.repositories {
		add(d.path, "commondir", "index", anyShared)
	}
	return dirs
}

// anyShared stands for the files with entries of an index that is split.
const anyShared = "sharedindex."

// concerns reports whether one of the events is about such a name.
func concerns(events []byte, watches map[int32]map[string]bool) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		if binary.NativeEndian.Uint32(events[4:])&unix.IN_Q_OVERFLOW != 0 {
			return true
		}
		size := int(binary.NativeEndian.Uint32(events[12:]))
		if size > len(events)-unix.SizeofInotifyEvent {
			return true
		}
		name := unix.ByteSliceToString(events[unix.SizeofInotifyEvent : unix.SizeofInotifyEvent+size])
		names := watches[int32(binary.NativeEndian.Uint32(events))]
		if names[name] || names[anyShared] && strings.HasPrefix(name, anyShared) {
			return true
		}
		events = events[unix.SizeofInotifyEvent+size:]
	}
	return false
}
