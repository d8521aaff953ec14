//go:build !linux || !(amd64 || arm64)

package seccomp

import (
	"errors"
	"os"
)

var errMachine = errors.New("there is no system call filter for this kind of machine")

// Program is for Linux on amd64 and arm64.
func (Profile) Program() ([]byte, error) { return nil, errMachine }

// File is for Linux on amd64 and arm64.
func (Profile) File() (*os.File, error) { return nil, errMachine }
