//go:build linux

package execserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/protocol/exec"
)

// handles are a connection's open files; they do not survive it.
type handles struct {
	mu    sync.Mutex
	files map[string]*os.File
}

func (h *handles) get(id string) (*os.File, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.files[id]
	if f == nil {
		return nil, jsonrpc.Errorf(exec.CodeNotFound, "unknown file handle `%s`", id)
	}
	return f, nil
}

// check refuses an id before anything is opened.
func (h *handles) check(id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.checkLocked(id)
}

func (h *handles) checkLocked(id string) error {
	switch {
	case len(id) > exec.MaxHandleID:
		return inputError("file handle ID must not exceed 32 bytes")
	case h.files[id] != nil:
		return inputError(fmt.Sprintf("file handle `%s` already exists", id))
	case len(h.files) >= exec.MaxHandles:
		return inputError(fmt.Sprintf("at most %d file handles may be open", exec.MaxHandles))
	}
	return nil
}

// put keeps an open file or closes it. It checks again: others may have opened meanwhile.
func (h *handles) put(id string, f *os.File) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.checkLocked(id); err != nil {
		f.Close()
		return err
	}
	if h.files == nil {
		h.files = map[string]*os.File{}
	}
	h.files[id] = f
	return nil
}

func (h *handles) close(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.files[id]; f != nil {
		f.Close()
		delete(h.files, id)
	}
}

func (h *handles) closeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.files {
		f.Close()
	}
	h.files = nil
}

func (c *conn) openHandle(raw json.RawMessage) (any, error) {
	var p exec.OpenParams
	return withPath(c, raw, &p, &p.Path, nil, &p.Sandbox, func(s scope, path string) (any, error) {
		if p.Mode != "" && p.Mode != exec.OpenRead && p.Mode != exec.OpenReplace {
			return nil, jsonrpc.Errorf(exec.CodeInvalidParams, "unknown variant `%s`, expected `read` or `replace`", p.Mode)
		}
		if err := c.handles.check(p.HandleID); err != nil {
			return nil, err
		}
		open := s.openRegular
		if p.Mode == exec.OpenReplace {
			open = s.create
		}
		f, err := open(path)
		if err != nil {
			return nil, err
		}
		return exec.HandleResult{HandleID: p.HandleID}, c.handles.put(p.HandleID, f)
	})
}

func (c *conn) readBlock(raw json.RawMessage) (any, error) {
	var p exec.ReadBlockParams
	if e := decode(raw, &p); e != nil {
		return nil, e
	}
	if p.Len < 1 || p.Len > exec.MaxBlock {
		return nil, inputError("file read block length must be between 1 and 1048576")
	}
	f, err := c.handles.get(p.HandleID)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, p.Len)
	n, err := 0, error(unix.EINVAL)
	if p.Offset <= math.MaxInt64 {
		n, err = f.ReadAt(buf, int64(p.Offset))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		c.handles.close(p.HandleID)
		return nil, err
	}
	return exec.ReadBlockResult{Chunk: buf[:n], EOF: n < len(buf)}, nil
}

func (c *conn) writeBlock(raw json.RawMessage) (any, error) {
	var p exec.WriteBlockParams
	if e := decode(raw, &p); e != nil {
		return nil, e
	}
	if len(p.Chunk) < 1 || len(p.Chunk) > exec.MaxBlock {
		return nil, inputError("file write block length must be between 1 and 1048576")
	}
	if p.Offset > math.MaxInt64-uint64(len(p.Chunk)) {
		return nil, inputError("file write range exceeds the signed 64-bit file offset limit")
	}
	f, err := c.handles.get(p.HandleID)
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteAt(p.Chunk, int64(p.Offset)); err != nil {
		return nil, err // the handle stays: the write may be repeated
	}
	return exec.Empty{}, nil
}

func (c *conn) closeHandle(raw json.RawMessage) (any, error) {
	var p exec.HandleParams
	if e := decode(raw, &p); e != nil {
		return nil, e
	}
	c.handles.close(p.HandleID)
	return exec.Empty{}, nil
}
