//go:build !linux

package box

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
)

var errOther = errors.New("boxes need Linux")

// Box is a running sandbox; there is none here.
type Box struct{}

// Child is a program inside.
type Child struct{}

func Init() error                                           { return errOther }
func Start(context.Context, Config) (*Box, error)           { return nil, errOther }
func (*Box) Done() <-chan struct{}                          { return nil }
func (*Box) Close() error                                   { return nil }
func (*Box) Pid() int                                       { return 0 }
func (*Box) Spawn(Command) (*Child, error)                  { return nil, errOther }
func (*Box) Listen(uint16) (net.Listener, error)            { return nil, errOther }
func (*Box) Dial(context.Context, uint16) (net.Conn, error) { return nil, errOther }
func (*Box) Pty() (master, slave *os.File, err error)       { return nil, nil, errOther }
func (*Box) Stat(string) (os.FileInfo, error)               { return nil, errOther }
func (*Child) Pid() int                                     { return 0 }
func (*Child) Done() <-chan struct{}                        { return nil }
func (*Child) Wait() (Exit, error)                          { return Exit{}, errOther }
func (*Child) Signal(syscall.Signal) error                  { return errOther }
