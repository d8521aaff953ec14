//go:build amd64 || arm64

package seccomp

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Program is the filter in the form that the kernel and bubblewrap take.
func (p Profile) Program() ([]byte, error) {
	if int(p) >= len(programs) {
		return nil, fmt.Errorf("there is no system call filter %d", p)
	}
	return programs[p]()
}

// programs are made once each.
var programs = [...]func() ([]byte, error){
	Box:        sync.OnceValues(Box.assemble),
	Networked:  sync.OnceValues(Networked.assemble),
	Restricted: sync.OnceValues(Restricted.assemble),
	InPlace:    sync.OnceValues(InPlace.assemble),
}

func (p Profile) assemble() ([]byte, error) {
	raw, err := bpf.Assemble(p.program())
	if err != nil {
		return nil, fmt.Errorf("assemble the system call filter: %w", err)
	}
	var out []byte
	for _, i := range raw { // struct sock_filter
		out = binary.NativeEndian.AppendUint16(out, i.Op)
		out = append(out, i.Jt, i.Jf)
		out = binary.NativeEndian.AppendUint32(out, i.K)
	}
	return out, nil
}

// File is the filter in a file of memory, at its beginning. Who reads it moves
// its offset, so each start needs one of its own; the caller closes it.
func (p Profile) File() (*os.File, error) {
	program, err := p.Program()
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("seccomp", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file for the system call filter: %w", err)
	}
	f := os.NewFile(uintptr(fd), "seccomp")
	n, err := unix.Pwrite(fd, program, 0)
	if err == nil && n != len(program) {
		err = unix.EIO
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("write the system call filter: %w", err)
	}
	return f, nil
}
