package beneath

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// maxDepth is how deep Used goes: deeper names are few, and a path of so many cannot
// be named at once.
const maxDepth = 256

// Used is how many bytes of disk everything in the directory takes, holes not
// counted and a file of several names once for each. It stops when it has counted
// more than upTo. What it may not look into counts nothing.
func (d *Dir) Used(ctx context.Context, upTo int64) (int64, error) {
	return d.used(ctx, upTo, maxDepth)
}

func (d *Dir) used(ctx context.Context, upTo int64, depth int) (sum int64, err error) {
	f, err := d.openat(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for sum <= upTo {
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue // it went meanwhile
			}
			sum += st.Blocks * 512
			if st.Mode&unix.S_IFMT != unix.S_IFDIR || depth == 0 || sum > upTo {
				continue
			}
			sub, err := d.Sub(name)
			if err != nil {
				continue
			}
			n, _ := sub.used(ctx, upTo-sum, depth-1) // what it could count
			sum += n
			if err = errors.Join(sub.Close(), ctx.Err()); err != nil {
				return sum, err
			}
		}
		if err != nil || len(names) == 0 {
			return sum, ctx.Err() // the end, or a directory that went
		}
	}
	return sum, nil
}
