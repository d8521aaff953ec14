package local

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// DiskUsed implements executor.Disk.
func (d *Driver) DiskUsed(ctx context.Context, id thole.ExecutorID, upTo int64) (int64, error) {
	root, err := beneath.Open(d.dir(id))
	if err != nil {
		return 0, err
	}
	defer root.Close()
	used, err := root.Used(ctx, upTo)
	if errors.Is(err, beneath.ErrUnseen) {
		err = executor.ErrUnseen
	}
	if err == nil && used <= upTo {
		used += deleted(ctx, d.dir(id, "home"))
	}
	return used, err
}

// DiskAllowed implements executor.Disk. The file is the server's own, and outlives it.
func (d *Driver) DiskAllowed(id thole.ExecutorID) (int64, error) {
	f, err := openRegular(d.dir(id, own, "disk"), os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// AllowDisk implements executor.Disk.
func (d *Driver) AllowDisk(id thole.ExecutorID, bytes int64) error {
	path := d.dir(id, own, "disk")
	if bytes > 0 {
		return atomicfile.Write(path, strconv.AppendInt(nil, bytes, 10), 0o600)
	}
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
