//go:build !linux

package repository

import "golang.org/x/sys/unix"

// toHold is the nearest that these systems have; they have no boxes.
const toHold = unix.O_RDONLY | unix.O_NONBLOCK
