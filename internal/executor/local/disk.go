package local

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// DiskUsed implements executor.Disk.
func (d *Driver) DiskUsed(ctx context.Context, id thole.ExecutorID, upTo int64) (int64, error) {
	root, err := beneath.Open(d.dir(id))
	if err != nil {
		return 0, err
	}
	defer root.Close()
	return root.Used(ctx, upTo)
}
