package dir

import (
	"context"
	"io"
	"io/fs"
	"slices"
	"strings"
)

func sortAsKeys(entries []fs.DirEntry) {
	asKey := func(e fs.DirEntry) string {
		if e.IsDir() {
			return e.Name() + "/"
		}
		return e.Name()
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(asKey(a), asKey(b)) })
}

// withContext ends a copy when ctx does.
func withContext(ctx context.Context, r io.Reader) io.Reader { return &ctxReader{ctx, r} }

type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
