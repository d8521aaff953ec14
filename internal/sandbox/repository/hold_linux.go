package repository

import "golang.org/x/sys/unix"

// toHold opens a path only to keep its file: no right to read it is needed, and a pipe waits
// for nobody.
const toHold = unix.O_PATH
