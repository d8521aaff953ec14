//go:build unix

package beneath

import "golang.org/x/sys/unix"

// Owner is the user that d belongs to.
func (d *Dir) Owner() (int, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstat(d.fd(), &st) })
	return int(st.Uid), fail("stat", d.f.Name(), err)
}

// ChownSelf gives d itself to a user and a group.
func (d *Dir) ChownSelf(uid, gid int) error {
	return fail("chown", d.f.Name(), retry(func() error { return unix.Fchown(d.fd(), uid, gid) }))
}

// ChownAll gives everything in d to a user and a group: of a link the link, never
// what it says.
func (d *Dir) ChownAll(uid, gid int) error {
	names, err := d.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		st, err := d.Lstat(name)
		if err != nil {
			return err
		}
		if st.Kind == Folder {
			sub, err := d.Sub(name)
			if err != nil {
				return err
			}
			err = sub.ChownAll(uid, gid)
			sub.Close()
			if err != nil {
				return err
			}
		}
		at, real := d.at(name)
		if err := retry(func() error { return unix.Fchownat(at, real, uid, gid, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
			return fail("chown", name, err)
		}
	}
	return nil
}
