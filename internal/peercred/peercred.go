// Package peercred reports who is at the other end of a unix socket, as the kernel
// recorded it when the socket began to listen or connected, and whether a process
// listens on a TCP port. A pid is one process only together with its start time,
// which is procid's part.
package peercred

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// ErrOtherUser is a peer that runs under another uid, root included.
var ErrOtherUser = errors.New("peer is another user")

// ErrOtherNamespace is a peer of our uid in a process namespace of its own: what
// a sandbox or a container holds.
var ErrOtherNamespace = errors.New("peer is in another process namespace")

// Cred is the peer at connect time.
type Cred struct {
	UID int
	PID int // 0 where the system does not report it
}

// Of returns the peer's credentials. conn must be a unix stream socket, possibly
// wrapped by something that has SyscallConn.
func Of(conn net.Conn) (Cred, error) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return Cred{}, fmt.Errorf("peer credentials: %T has no descriptor", conn)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return Cred{}, fmt.Errorf("peer credentials: %w", err)
	}
	var cred Cred
	var sysErr error
	if err := raw.Control(func(fd uintptr) { cred, sysErr = get(int(fd)) }); err != nil {
		return Cred{}, fmt.Errorf("peer credentials: %w", err)
	}
	if sysErr != nil {
		return Cred{}, fmt.Errorf("peer credentials: %w", sysErr)
	}
	return cred, nil
}

// SameUser proves that the peer has our effective uid. What cannot be proven is
// refused.
func SameUser(conn net.Conn) (Cred, error) {
	cred, err := Of(conn)
	if err != nil {
		return Cred{}, err
	}
	if cred.UID != os.Geteuid() {
		return cred, fmt.Errorf("%w: uid %d, we are %d", ErrOtherUser, cred.UID, os.Geteuid())
	}
	return cred, nil
}

// Neighbour proves that the peer has our effective uid and lives in our process
// namespace.
func Neighbour(conn net.Conn) error {
	cred, err := SameUser(conn)
	if err != nil {
		return err
	}
	return sameNamespace(cred.PID)
}
