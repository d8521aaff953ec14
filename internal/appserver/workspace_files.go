package appserver

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"

	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/protocol/app"
	"github.com/tholehq/thole/protocol/exec"
)

// maxFile is the largest file that one answer carries.
const maxFile = 16 << 20

func (s *Server) registerFiles() {
	on(s, "fs/readFile", s.readFile)
	on(s, "fs/writeFile", s.writeFile)
	on(s, "fs/createDirectory", func(ctx context.Context, c *conn, p *app.FsCreateDirectoryParams) (answer, error) {
		at, err := s.where(ctx, c, p.Path, p.InThread, true)
		return s.alter(ctx, c, at, err, alteration{action: "file.mkdir", method: exec.MethodCreateDirectory, params: exec.CreateDirectoryParams{Path: at.uri(), Recursive: p.Recursive, Sandbox: at.confined()}})
	})
	on(s, "fs/getMetadata", func(ctx context.Context, c *conn, p *app.FsPathParams) (answer, error) {
		var meta exec.FileMetadata
		err := s.look(ctx, c, p, exec.MethodGetMetadata, &meta)
		return result(app.FsMetadata{IsDirectory: meta.IsDirectory, IsFile: meta.IsFile, IsSymlink: meta.IsSymlink, CreatedAtMs: meta.CreatedAtMs, ModifiedAtMs: meta.ModifiedAtMs}, err)
	})
	on(s, "fs/readDirectory", func(ctx context.Context, c *conn, p *app.FsPathParams) (answer, error) {
		var list exec.ReadDirectoryResult
		err := s.look(ctx, c, p, exec.MethodReadDirectory, &list)
		out := app.FsReadDirectoryResult{Entries: []app.FsEntry{}}
		for _, e := range list.Entries {
			out.Entries = append(out.Entries, app.FsEntry(e))
		}
		return result(out, err)
	})
	on(s, "fs/remove", func(ctx context.Context, c *conn, p *app.FsRemoveParams) (answer, error) {
		at, err := s.where(ctx, c, p.Path, p.InThread, true)
		return s.alter(ctx, c, at, err, alteration{action: "file.remove", method: exec.MethodRemove, params: exec.RemoveParams{Path: at.uri(), Recursive: p.Recursive, Force: p.Force, Sandbox: at.confined()}})
	})
	on(s, "fs/copy", func(ctx context.Context, c *conn, p *app.FsCopyParams) (answer, error) {
		to, err := s.where(ctx, c, p.DestinationPath, p.InThread, true)
		if err != nil {
			return answer{}, err
		}
		id := string(to.thread) // a copy stays in one workspace
		from, err := s.where(ctx, c, p.SourcePath, app.InThread{ThreadID: &id}, false)
		return s.alter(ctx, c, to, err, alteration{
			action: "file.copy", after: map[string]any{"from": from.path}, method: exec.MethodCopy,
			params: exec.CopyParams{SourcePath: from.uri(), DestinationPath: to.uri(), Recursive: p.Recursive, Sandbox: from.confined()},
		})
	})
}

func (p place) uri() string { return exec.FormatURI(p.path) }

// look reads about a path.
func (s *Server) look(ctx context.Context, c *conn, p *app.FsPathParams, method string, result any) error {
	at, err := s.where(ctx, c, p.Path, p.InThread, false)
	if err != nil {
		return err
	}
	return s.inExecutor(c, authz.BrowseFiles, at.thread, func(ctx context.Context, x *executorclient.Exec) error {
		return fileError(x.Call(ctx, method, exec.PathParams{Path: at.uri(), Sandbox: at.confined()}, result))
	})
}

// alteration is a call that changes files.
type alteration struct {
	action string         // as the audit chain calls it
	after  map[string]any // what will be there, besides the path
	method string
	params any
}

// alter changes files. What was there and what will be is recorded before.
func (s *Server) alter(ctx context.Context, c *conn, at place, err error, a alteration) (answer, error) {
	if err == nil {
		err = s.inExecutor(c, authz.EditFiles, at.thread, func(within context.Context, x *executorclient.Exec) error {
			e := at.entry(a.action, a.after)
			if s.cfg.Audit != nil {
				e.Before = at.before(within, x)
			}
			return s.cfg.Audit.Do(ctx, e, func() error { return fileError(x.Call(within, a.method, a.params, nil)) })
		})
	}
	return result(app.Empty{}, err)
}

// entry is a link about a path in a thread's workspace.
func (p place) entry(action string, facts map[string]any) audit.Entry {
	all := map[string]any{"path": p.path}
	maps.Copy(all, facts)
	o := p.owner
	return audit.Entry{Action: action, Kind: "thread", ID: string(p.thread), App: o.App, Project: o.Project, Owner: o.User, After: audit.Facts(all)}
}

// before is what a path has, "" for nothing. A file beyond maxSummed has a size alone.
func (p place) before(ctx context.Context, x *executorclient.Exec) string {
	var meta exec.FileMetadata
	if x.Call(ctx, exec.MethodGetMetadata, exec.PathParams{Path: p.uri(), Sandbox: p.confined()}, &meta) != nil {
		return ""
	}
	facts := map[string]any{"path": p.path}
	switch {
	case meta.IsDirectory:
		facts["directory"] = true
	case meta.IsFile && meta.Size <= maxSummed:
		if data, err := p.content(ctx, x, maxSummed); err == nil {
			maps.Copy(facts, contentFacts(data))
		}
	case meta.IsFile:
		facts["size"] = meta.Size
	}
	return audit.Facts(facts)
}

// maxSummed is the largest file whose content is summed before it changes.
const maxSummed = 8 << 20

func contentFacts(data []byte) map[string]any {
	sum := sha256.Sum256(data)
	return map[string]any{"size": len(data), "sha256": hex.EncodeToString(sum[:])}
}

// fileHandle names the one open file of a session.
const fileHandle = "1"

func (s *Server) readFile(ctx context.Context, c *conn, p *app.FsPathParams) (answer, error) {
	at, err := s.where(ctx, c, p.Path, p.InThread, false)
	if err != nil {
		return answer{}, err
	}
	var data []byte
	err = s.inExecutor(c, authz.BrowseFiles, at.thread, func(ctx context.Context, x *executorclient.Exec) (err error) {
		data, err = at.content(ctx, x, maxFile)
		return err
	})
	return result(app.FsReadFileResult{DataBase64: data}, err)
}

// content reads a file, block by block: neither one that grows nor an executor that goes on
// and on takes more than its share.
func (p place) content(ctx context.Context, x *executorclient.Exec, limit int) ([]byte, error) {
	if err := x.Call(ctx, exec.MethodOpen, exec.OpenParams{HandleID: fileHandle, Path: p.uri(), Sandbox: p.confined()}, nil); err != nil {
		return nil, fileError(err)
	}
	data := []byte{}
	for {
		var block exec.ReadBlockResult
		if err := x.Call(ctx, exec.MethodReadBlock, exec.ReadBlockParams{HandleID: fileHandle, Offset: uint64(len(data)), Len: exec.MaxBlock}, &block); err != nil {
			return nil, fileError(err)
		}
		if data = append(data, block.Chunk...); len(data) > limit {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "file exceeds %d bytes", limit)
		}
		if block.EOF || len(block.Chunk) == 0 {
			return data, nil
		}
	}
}

func (s *Server) writeFile(ctx context.Context, c *conn, p *app.FsWriteFileParams) (answer, error) {
	data, err := base64.StdEncoding.DecodeString(p.DataBase64)
	if err != nil {
		return answer{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "fs/writeFile requires valid base64 dataBase64: %s", badBase64(p.DataBase64, err))
	}
	if len(data) > maxFile {
		return answer{}, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "fs/writeFile: %s", fmt.Sprintf("file exceeds %d bytes", maxFile))
	}
	at, err := s.where(ctx, c, p.Path, p.InThread, true)
	return s.alter(ctx, c, at, err, alteration{
		action: "file.write", after: contentFacts(data), method: exec.MethodWriteFile,
		params: exec.WriteFileParams{Path: at.uri(), Data: p.DataBase64, Sandbox: at.confined()},
	})
}
