//go:build unix

package beneath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// An agent can make directories and files that their owner may not read or enter;
// they are part of its tree all the same. Their owner may lend itself the
// permission. Whether that is needed is asked of the kernel: it depends on
// capabilities, which root has in one place and not in another.

// Loan is a directory whose owner was lent the permission to read and enter it.
type Loan struct {
	inode     uint64
	had, lent uint32
}

// lends is how often something is lent again that its owner closes meanwhile.
const lends = 5

// SubLent opens a directory. A loan, where one was needed, is given
// back with GiveBack, by a process that can reach the name again.
func (d *Dir) SubLent(name string) (sub *Dir, loan *Loan, err error) {
	sub, err = d.Sub(name)
	if err == nil {
		// Who may read it but not enter it gets names that cannot be looked at.
		if _, err = sub.Lstat("."); err == nil {
			return sub, nil, nil
		}
		sub.Close()
	}
	if !errors.Is(err, fs.ErrPermission) {
		return nil, nil, err
	}
	h, err := d.hold(name)
	if err != nil {
		return nil, nil, err
	}
	defer h.close()
	if h.stat.Kind != Folder {
		return nil, nil, fail("open", name, unix.ENOTDIR)
	}
	loan = &Loan{inode: h.stat.Inode, had: h.bits, lent: h.bits | 0o500}
	if err := h.chmod(loan.lent); err != nil {
		return nil, nil, err
	}
	for range lends {
		var f *os.File
		if f, err = h.reopen(unix.O_DIRECTORY); err == nil {
			return &Dir{f: f}, loan, nil
		}
		if !errors.Is(err, fs.ErrPermission) {
			break
		}
		if err := h.chmod(loan.lent); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, errors.Join(err, h.chmod(loan.had))
}

// Relend lends an open directory the permission to enter it, if it has lost it;
// without need there is no loan. Its graft stays open.
func (d *Dir) Relend() (*Loan, error) {
	if d.graft != nil {
		if _, err := d.graft.to.Relend(); err != nil {
			return nil, err
		}
	}
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(d.fd(), &st) }); err != nil {
		return nil, fail("stat", d.f.Name(), err)
	}
	loan := &Loan{inode: st.Ino, had: uint32(st.Mode) & 0o7777} //nolint:unconvert // it is uint16 on darwin
	if loan.lent = loan.had | 0o500; loan.lent == loan.had {
		return nil, nil
	}
	return loan, fail("chmod", d.f.Name(), retry(func() error { return unix.Fchmod(d.fd(), loan.lent) }))
}

// ParentLent is Parent for a path whose directories may have to be lent the
// permission: lent receives each that was.
func (d *Dir) ParentLent(path string, lent func(path string, l *Loan)) (*Dir, string, error) {
	if err := CheckPath(path); err != nil {
		return nil, "", err
	}
	at, err := d.dup()
	if err != nil {
		return nil, "", err
	}
	done := 0
	for {
		name, _, more := strings.Cut(path[done:], "/")
		if !more {
			return at, name, nil
		}
		next, loan, err := at.SubLent(name)
		at.Close()
		if loan != nil {
			lent(path[:done+len(name)], loan)
		}
		if err != nil {
			return nil, "", fmt.Errorf("open %q: %w", path, err)
		}
		at, done = next, done+len(name)+1
	}
}

// GiveBack takes a loan from a directory again, unless it is another one by now or
// has another mode: then another process decided.
func (d *Dir) GiveBack(name string, loan *Loan) error {
	h, err := d.hold(name)
	if err != nil {
		return err
	}
	defer h.close()
	if h.stat.Kind != Folder || h.stat.Inode != loan.inode || h.bits != loan.lent {
		return nil
	}
	return h.chmod(loan.had)
}

// OpenLent opens a regular file for reading; one that its owner may not read is
// lent the permission for the time of the call. lent says so: the change time is
// then ours.
func (d *Dir) OpenLent(name string) (f *os.File, lent bool, err error) {
	f, err = d.Open(name)
	if !errors.Is(err, fs.ErrPermission) {
		return f, false, err
	}
	h, err := d.hold(name)
	if err != nil {
		return nil, false, err
	}
	defer h.close()
	if h.stat.Kind != File {
		return nil, false, fail("open", name, fs.ErrInvalid)
	}
	for range lends {
		if err := h.chmod(h.bits | 0o400); err != nil {
			return nil, false, err
		}
		if f, err = h.reopen(0); !errors.Is(err, fs.ErrPermission) {
			break
		}
	}
	if err := errors.Join(err, h.chmod(h.bits)); err != nil {
		if f != nil {
			f.Close()
		}
		return nil, false, err
	}
	return f, true, nil
}

// Trusted opens a directory that belongs to us and that the caller trusts to be
// where its path says. Its owner may use it from then on, whatever an agent made
// of it: another process of thole's may have fewer capabilities than this one.
func Trusted(path string) (*Dir, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() && st.Mode()&0o700 != 0o700 {
		_ = os.Chmod(path, st.Mode().Perm()|0o700) // where that fails, opening it says what is wrong
	}
	return Open(path)
}

// OpenUp lets the owner use the directories of a path, as far as there are any. It
// is for paths that the platform names; it moves nothing.
func (d *Dir) OpenUp(path string) error {
	if path == "" {
		return nil
	}
	if err := CheckPath(path); err != nil {
		return err
	}
	at, err := d.dup()
	if err != nil {
		return err
	}
	defer func() { at.Close() }()
	for name := range strings.SplitSeq(path, "/") {
		st, err := at.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && st.Kind != Folder {
			return nil
		}
		if err == nil && st.Mode&0o700 != 0o700 {
			err = at.Chmod(name, st.Mode|0o700)
		}
		if err != nil {
			return err
		}
		next, err := at.Sub(name)
		if err != nil {
			return err
		}
		at.Close()
		at = next
	}
	return nil
}
