package side

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
	"golang.org/x/sync/errgroup"
)

// Push implements Side. The tree goes last.
func (l *Local) Push(ctx context.Context, req workspace.PushRequest) (workspace.PushResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := l.staged
	if st == nil || st.tree != req.Tree.Sum {
		return workspace.PushResult{}, thole.Errorf(thole.CodeConflict, "tree %s is not waiting to be pushed", req.Tree.Sum)
	}
	root, err := l.root()
	if err != nil {
		return workspace.PushResult{}, err
	}
	defer root.Close()
	type job struct {
		id   string
		src  source
		at   int64
		part int
		sum  workspace.PartSum
		link objects.Link
	}
	var jobs []job // all are checked before the first begins
	for id, links := range req.Links {
		src, ok := st.sources[id]
		if !ok {
			return workspace.PushResult{}, thole.Errorf(thole.CodeInvalid, "object %s is not part of the tree", id)
		}
		parts := src.object.Parts
		if len(parts) == 0 {
			sum, err := objects.ParseSum(id)
			if err != nil {
				return workspace.PushResult{}, err
			}
			parts = []workspace.PartSum{{Size: src.object.Size, Sum: sum}}
		}
		if len(links) != len(parts) {
			return workspace.PushResult{}, thole.Errorf(thole.CodeInvalid, "object %s has %d parts and %d links", id, len(parts), len(links))
		}
		off := int64(0)
		for i, p := range parts {
			jobs = append(jobs, job{id, src, off, i + 1, p, links[i]})
			off += p.Size
		}
	}
	var mu sync.Mutex // guards res
	res := workspace.PushResult{Parts: map[string][]objects.Part{}}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(transfers)
	for _, j := range jobs {
		group.Go(func() error {
			etag, err := l.pushPart(gctx, root, j.src, j.at, j.sum, j.link)
			if err != nil && !errors.Is(err, errChanging) {
				return fmt.Errorf("push object: %w", err)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				res.Changed = append(res.Changed, j.id)
				return nil
			}
			res.Parts[j.id] = append(res.Parts[j.id], objects.Part{Number: j.part, ETag: etag, Size: j.sum.Size, Sum: j.sum.Sum})
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return workspace.PushResult{}, err
	}
	if len(res.Changed) > 0 {
		return res, l.dropStage()
	}
	_, err = l.put(ctx, req.Tree.Link, int64(len(st.encoded)), func() (io.Reader, error) { return bytes.NewReader(st.encoded), nil })
	if err != nil {
		return workspace.PushResult{}, fmt.Errorf("push tree: %w", err)
	}
	return res, nil
}

// pushPart moves one part. The store refuses bytes that do not have the part's
// sum; when it does, and the file is not what the scan read, the file changed.
func (l *Local) pushPart(ctx context.Context, root *beneath.Dir, src source, off int64, p workspace.PartSum, link objects.Link) (string, error) {
	f, err := src.open(root)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data := io.ReaderAt(f)
	if src.staged == "" {
		data = src.data.Reader(f)
	}
	etag, err := l.put(ctx, link, p.Size, func() (io.Reader, error) { return io.NewSectionReader(data, off, p.Size), nil })
	if err != nil && src.staged == "" && ctx.Err() == nil {
		if sum, sumErr := sumSection(data, off, p.Size); sumErr != nil || sum != p.Sum {
			return "", errChanging
		}
	}
	return etag, err
}

func (s source) open(root *beneath.Dir) (*os.File, error) {
	if s.staged != "" {
		return os.Open(s.staged)
	}
	dir, name, err := root.Parent(s.path, false)
	if err == nil {
		defer dir.Close()
		var f *os.File
		if f, err = dir.Open(name); err == nil {
			return f, nil
		}
	}
	if gone(err) || errors.Is(err, fs.ErrPermission) {
		return nil, errChanging // the next scan copies it
	}
	return nil, err
}

func sumSection(f io.ReaderAt, off, n int64) (objects.Sum, error) {
	h := sha256.New()
	if copied, err := io.Copy(h, io.NewSectionReader(f, off, n)); err != nil || copied != n {
		return objects.Sum{}, errors.Join(err, errChanging)
	}
	return objects.Sum(h.Sum(nil)), nil
}
