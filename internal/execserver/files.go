//go:build linux

package execserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/internal/unguarded"
	"github.com/tholehq/thole/protocol/exec"
)

// fileMethod answers one file request.
type fileMethod func(c *conn, raw json.RawMessage) (any, error)

var fileMethods = map[string]fileMethod{
	exec.MethodReadFile: func(c *conn, raw json.RawMessage) (any, error) {
		var p exec.PathParams
		return withPath(c, raw, &p, &p.Path, &p.FollowSymlinks, &p.Sandbox, func(s scope, path string) (any, error) {
			return c.readFile(s, path)
		})
	},
	exec.MethodWriteFile: func(c *conn, raw json.RawMessage) (any, error) {
		var p exec.WriteFileParams
		return withPath(c, raw, &p, &p.Path, &p.FollowSymlinks, &p.Sandbox, func(s scope, path string) (any, error) {
			data, err := base64.StdEncoding.DecodeString(p.Data)
			if err == nil && strings.ContainsAny(p.Data, "\r\n") { // Go passes over them
				err = errors.New("a line break")
			}
			if err != nil {
				return nil, inputError("fs/writeFile requires valid base64 dataBase64: " + err.Error())
			}
			return exec.Empty{}, s.writeFile(path, data)
		})
	},
	exec.MethodCreateDirectory: func(c *conn, raw json.RawMessage) (any, error) {
		var p exec.CreateDirectoryParams
		return withPath(c, raw, &p, &p.Path, &p.FollowSymlinks, &p.Sandbox, func(s scope, path string) (any, error) {
			return exec.Empty{}, s.createDirectory(path, orTrue(p.Recursive))
		})
	},
	exec.MethodGetMetadata: func(c *conn, raw json.RawMessage) (any, error) {
		var p exec.PathParams
		return withPath(c, raw, &p, &p.Path, &p.FollowSymlinks, &p.Sandbox, func(s scope, path string) (any, error) {
			return s.metadata(path)
		})
	},
	exec.MethodCanonicalize: func(c *conn, raw json.RawMessage) (any, error) {
		var p exec.PathParams
		return withPath(c, raw, &p, &p.Path, nil, &p.Sandbox, func(s scope, path string) (any, error) {
			real, err := s.canonicalize(path)
			return exec.PathResult{Path: exec.FormatURI(real)}, err
		})
	},
	exec.MethodReadDirectory: func(c *conn, raw json.RawMessage) (any, error) {
		var p exec.PathParams
		return withPath(c, raw, &p, &p.Path, nil, &p.Sandbox, func(s scope, path string) (any, error) {
			entries, err := s.readDirectory(path)
			return exec.ReadDirectoryResult{Entries: entries}, err
		})
	},
	exec.MethodWalk: func(c *conn, raw json.RawMessage) (any, error) {
		var p exec.WalkParams
		return withPath(c, raw, &p, &p.Path, nil, &p.Sandbox, func(s scope, path string) (any, error) {
			return s.walkTree(path, p.Options)
		})
	},
	exec.MethodRemove: func(c *conn, raw json.RawMessage) (any, error) {
		var p exec.RemoveParams
		return withPath(c, raw, &p, &p.Path, &p.FollowSymlinks, &p.Sandbox, func(s scope, path string) (any, error) {
			return exec.Empty{}, s.remove(path, orTrue(p.Recursive), orTrue(p.Force))
		})
	},
	exec.MethodCopy: func(c *conn, raw json.RawMessage) (any, error) {
		var p exec.CopyParams
		return withPath(c, raw, &p, &p.SourcePath, nil, &p.Sandbox, func(s scope, from string) (any, error) {
			to, err := nativePath(p.DestinationPath)
			if err != nil {
				return nil, err
			}
			return exec.Empty{}, s.copy(from, to, p.Recursive)
		})
	},
	exec.MethodOpen:              (*conn).openHandle,
	exec.MethodReadBlock:         (*conn).readBlock,
	exec.MethodWriteBlock:        (*conn).writeBlock,
	exec.MethodClose:             (*conn).closeHandle,
	exec.MethodWatchMissing:      (*conn).watchMissing,
	exec.MethodWatch:             (*conn).watchPath,
	exec.MethodUnwatch:           (*conn).unwatch,
	exec.MethodEnvironmentConfig: (*conn).readConfig,
}

func (c *conn) fileRequest(req *jsonrpc.Request) {
	result, err := fileMethods[req.Method](c, req.Params)
	if err != nil {
		_ = req.Error(fsError(err))
		return
	}
	_ = req.Reply(result)
	if r, ok := result.(heldFile); ok {
		c.ses.held.answers.give(r.room)
	}
}

// heldFile is an answer that has its memory until it is queued.
type heldFile struct {
	exec.ReadFileResult
	room int64
}

func (c *conn) readFile(s scope, path string) (any, error) {
	r := heldFile{}
	data, err := s.readFile(path, func(size int64) error {
		r.room = copies * size
		if !c.ses.held.answers.wait(c.rpc.Context(), r.room) {
			r.room = 0
			return context.Canceled
		}
		return nil
	})
	if err != nil {
		c.ses.held.answers.give(r.room)
		return nil, err
	}
	r.Data = data
	return r, nil
}

// withPath decodes params, resolves the path and the sandbox, and runs f, on a
// confined thread when a policy restricts files.
func withPath(c *conn, raw json.RawMessage, params any, uri *string, follow **bool, sb **exec.Sandbox,
	f func(s scope, path string) (any, error)) (result any, err error) {
	if e := decode(raw, params); e != nil {
		return nil, e
	}
	path, err := nativePath(*uri)
	if err != nil {
		return nil, err
	}
	s := scope{follow: follow == nil || orTrue(*follow)}
	if *sb != nil {
		if s.policy, err = sandbox.Compile(*sb, c.srv.place("")); err != nil {
			return nil, invalid(err)
		}
	}
	if !s.policy.RestrictsFiles() && c.srv.cfg.Box != nil && !unguarded.Build {
		// Programs run in the box and files are opened out here, where links that an agent
		// lays lead further.
		s.policy = sandbox.Hiding(c.srv.cfg.Own)
	}
	if !s.policy.RestrictsFiles() {
		return f(s, path)
	}
	if c.srv.cfg.Kept != nil {
		s.policy.Keep(c.srv.cfg.Kept())
	}
	if cerr := sandbox.Confined(s.policy, func() { result, err = f(s, path) }); cerr != nil {
		return nil, invalid(cerr)
	}
	return result, err
}

// nativePath converts a URI: malformed is -32602, foreign is -32600. A path that the system
// would not take ends here: what goes up it name by name would be busy for hours.
func nativePath(uri string) (string, error) {
	path, err := exec.ParseURI(uri)
	switch {
	case errors.Is(err, exec.ErrForeignPath):
		return "", jsonrpc.Errorf(exec.CodeInvalidRequest, "%s", err)
	case err != nil:
		return "", invalid(err)
	case len(path) >= unix.PathMax:
		return "", fsError(unix.ENAMETOOLONG)
	}
	return path, nil
}

func orTrue(b *bool) bool { return b == nil || *b }
