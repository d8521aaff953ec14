// Package box starts programs inside a sandbox that others of its programs share.
//
// The init is the sandbox's first process. It knows no secret: it starts
// programs, binds and dials ports of the sandbox's own loopback and opens terminals
// there, each on a request that comes over a socket which nobody else has, and hands
// the descriptors out. The owner, which asks, stays outside, another principal: nothing inside
// sees its processes, memory, files or sockets, and it takes every byte from inside
// for hostile. When the init ends, so does everything inside; when its owner does,
// so does the init.
package box

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// Command is a program to start inside. Paths are those of the inside.
type Command struct {
	Path string
	Argv []string // with the program's name
	Env  []string
	Dir  string
	// Files are its stdin, stdout and stderr, which stay the caller's.
	Files [3]*os.File
	// Session makes it the leader of a session instead of a process group, Terminal of
	// one with its stdin as controlling terminal.
	Session, Terminal bool
	// Tag, if not 0, is its soft limit of message queue bytes from its birth on, by
	// which its descendants are known (internal/process).
	Tag uint64
}

// Exit is how a program ended.
type Exit struct {
	Status syscall.WaitStatus
	CPU    time.Duration // of it and the children it waited for
}

// ErrGone says that the box has ended, and all that was inside.
var ErrGone = errors.New("the box has ended")

// Config is how to enter the sandbox.
type Config struct {
	// Path and Args are a command line that ends with the init, which finds descriptor
	// Socket as it was handed over: bubblewrap's.
	Path string
	Args []string
	Env  []string
	// Files become the descriptors after Socket.
	Files []*os.File
}

// Socket is the init's descriptor of its socket; Config.Files come after it.
const Socket = 3

// InitArgs are the arguments that make this program the init.
var InitArgs = []string{"box", "init"}
