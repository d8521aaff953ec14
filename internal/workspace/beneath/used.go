package beneath

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// ErrUnseen: a process hides what a directory holds, so nobody knows what it takes.
var ErrUnseen = errors.New("not every directory could be looked into")

const (
	maxDepth = 128 // directories that are open at a time
	maxDeep  = 256 // directories at that depth that wait to be looked into
)

// Used is how many bytes of disk everything in the directory takes, holes not
// counted and a file of several names once for each, at any depth. It stops when it
// has counted more than upTo. A directory that its owner may not read is read all the
// same.
func (d *Dir) Used(ctx context.Context, upTo int64) (int64, error) {
	top, err := d.Sub(".")
	if err != nil {
		return 0, err
	}
	u := &use{ctx: ctx, upTo: upTo, deep: []*Dir{top}}
	defer func() {
		for _, d := range u.deep {
			d.Close()
		}
	}()
	for err == nil && len(u.deep) > 0 {
		next := u.deep[len(u.deep)-1]
		u.deep = u.deep[:len(u.deep)-1]
		err = u.count(next, 0)
		next.Close()
	}
	if err == nil && u.sum <= upTo {
		err = u.unseen
	}
	return u.sum, err
}

type use struct {
	ctx    context.Context
	upTo   int64
	sum    int64
	deep   []*Dir // to be counted, each as a beginning of its own
	unseen error
}

// count adds what is in a directory that was opened for it.
func (u *use) count(d *Dir, depth int) error {
	for u.sum <= u.upTo {
		names, err := d.f.Readdirnames(1024)
		for _, name := range names {
			if err := u.add(d, name, depth); err != nil {
				return err
			}
		}
		if err != nil || len(names) == 0 {
			break // the end, or a directory that went
		}
	}
	return u.ctx.Err()
}

func (u *use) add(d *Dir, name string, depth int) error {
	at, real := d.at(name)
	var st unix.Stat_t
	err := unix.Fstatat(at, real, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		u.missed(err)
		return nil
	}
	if u.sum += st.Blocks * 512; st.Mode&unix.S_IFMT != unix.S_IFDIR || u.sum > u.upTo {
		return nil
	}
	sub, loan, err := d.SubLent(name)
	if err != nil {
		u.missed(err)
		return nil
	}
	if loan != nil {
		defer func() { _ = d.GiveBack(name, loan) }()
	}
	if depth < maxDepth {
		defer sub.Close()
		return u.count(sub, depth+1)
	}
	if len(u.deep) == maxDeep {
		u.unseen = ErrUnseen
		return sub.Close()
	}
	u.deep = append(u.deep, sub)
	return nil
}

// missed notes what was kept from us; what went meanwhile takes nothing.
func (u *use) missed(err error) {
	if errors.Is(err, fs.ErrPermission) {
		u.unseen = ErrUnseen
	}
}
