package box

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/tholehq/thole/internal/strictjson"
)

// A message is a length, of four bytes, and so much JSON. Descriptors travel with its
// first byte.
const (
	maxRequest = 8 << 20  // more than the kernel gives a program as arguments and environment
	maxAnswer  = 64 << 10 // from inside
	maxFiles   = 3
)

type operation string

const (
	opSpawn  operation = "spawn"
	opListen operation = "listen"
	opDial   operation = "dial"
	opPty    operation = "pty"
	opOpen   operation = "open"
)

// request is what the owner asks. Words are bytes, since nobody promises UTF-8.
type request struct {
	ID       uint64    `json:"id"`
	Op       operation `json:"op"`
	Path     []byte    `json:"path,omitempty"`
	Argv     [][]byte  `json:"argv,omitempty"`
	Env      [][]byte  `json:"env,omitempty"`
	Dir      []byte    `json:"dir,omitempty"`
	Session  bool      `json:"session,omitempty"`
	Terminal bool      `json:"terminal,omitempty"`
	Tag      uint64    `json:"tag,omitempty"`
	Port     uint16    `json:"port,omitempty"`
}

// answer is what the init says: of a request, with its id and an error or
// descriptors, and once more of a program that has ended. The first one, of id 0,
// says that it is ready.
type answer struct {
	ID     uint64        `json:"id"`
	Errno  syscall.Errno `json:"errno,omitempty"`
	Exited bool          `json:"exited,omitempty"`
	Status uint32        `json:"status,omitempty"`
	CPU    int64         `json:"cpu,omitempty"` // nanoseconds
}

func send(c *net.UnixConn, m any, files ...int) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(body) > maxRequest {
		return syscall.E2BIG
	}
	msg := append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body))), body...)
	var rights []byte
	if len(files) > 0 {
		rights = syscall.UnixRights(files...)
	}
	n, _, err := c.WriteMsgUnix(msg, rights, nil)
	if err == nil && n < len(msg) {
		_, err = c.Write(msg[n:])
	}
	return err
}

// receive reads one message of at most limit bytes. Its files are the caller's,
// those of a message that is refused are closed.
func receive(c *net.UnixConn, limit uint32, m any) (files []*os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(files)
			files = nil
		}
	}()
	var head [4]byte
	oob := make([]byte, syscall.CmsgSpace(4*maxFiles))
	for n := 0; n < len(head); {
		got, oobn, _, _, err := c.ReadMsgUnix(head[n:], oob)
		if err != nil {
			return files, err
		}
		more, err := rights(oob[:oobn])
		if files = append(files, more...); err != nil {
			return files, err
		}
		if got == 0 {
			return files, io.EOF
		}
		if n += got; len(files) > maxFiles {
			return files, errors.New("too many descriptors")
		}
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > limit {
		return files, fmt.Errorf("a message of %d bytes", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c, body); err != nil {
		return files, err
	}
	return files, strictjson.Unmarshal(body, m)
}

func rights(oob []byte) (files []*os.File, err error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		fds, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "box"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

func words(in []string) [][]byte {
	out := make([][]byte, len(in))
	for i, s := range in {
		out[i] = []byte(s)
	}
	return out
}

func text(in [][]byte) []string {
	out := make([]string, len(in))
	for i, b := range in {
		out[i] = string(b)
	}
	return out
}
