package sqldb

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	thole "github.com/tholehq/thole"
)

// prepareFile makes sure that the database file exists with mode 0600 before
// SQLite opens it (its -wal and -shm files inherit the mode), and refuses a file
// or directory that someone else could change or read.
func prepareFile(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fileError("make directory", dir, err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fileError("look at", dir, err)
	}
	if m := info.Mode(); m.Perm()&0o022 != 0 && m&os.ModeSticky == 0 {
		return thole.Errorf(thole.CodeForbidden, "open store: directory %s can be written by others (mode %04o)", dir, m.Perm()).
			WithHint("chmod 700 %s", dir)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return errors.Join(f.Close(), syncDir(dir))
	}
	if !errors.Is(err, fs.ErrExist) {
		return fileError("create", path, err)
	}
	return checkFile(path)
}

// checkFile refuses a database file that is not this user's alone.
func checkFile(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fileError("look at", path, err)
	}
	if !info.Mode().IsRegular() {
		return thole.Errorf(thole.CodeInvalid, "open store: %s is not a regular file", path)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return thole.Errorf(thole.CodeForbidden, "open store: %s is open to others (mode %04o)", path, perm).
			WithHint("chmod 600 %s", path)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return thole.Errorf(thole.CodeForbidden, "open store: %s belongs to user id %d, not to %d", path, st.Uid, os.Geteuid())
	}
	return nil
}

// lockFile takes the ownership of the database at path, held until the file is
// closed or the process dies. The lock stands on a file of its own because
// closing any descriptor of the database itself would drop SQLite's locks.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fileError("open", path+".lock", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, thole.Errorf(thole.CodeBusy, "open store: %s is owned by a running process", path).
				WithHint("stop the process that runs on this home, or use another --home")
		}
		return nil, fileError("lock", path, err)
	}
	return f, nil
}

// used is what the lock file of a store holds from its first opening on.
const used = "this store was used\n"

// markUsed records next to the store that it was made, so that it is missed when it is
// gone. A crash before it costs nothing: nothing was acknowledged yet.
func markUsed(lock *os.File) error {
	if info, err := lock.Stat(); err != nil || info.Size() > 0 {
		return err
	}
	if _, err := lock.WriteAt([]byte(used), 0); err != nil {
		return err
	}
	return lock.Sync()
}

// refuseEmptied refuses to make a new store in the place of one that was used and has
// nothing left of it: a file that was cut or removed must not look like a first start.
func refuseEmptied(path string, lock *os.File) error {
	mark, err := lock.Stat()
	if err != nil {
		return fileError("look at", path+".lock", err)
	}
	if mark.Size() == 0 {
		return nil
	}
	for _, part := range []string{path, path + "-wal"} {
		info, err := os.Stat(part)
		if err == nil && info.Size() > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fileError("look at", part, err)
		}
	}
	return thole.Errorf(thole.CodeInvalid, "open store: %s was used before and is empty now", path).
		WithHint("put a backup in its place with thole db restore; to begin with nothing remove %s and %s.lock", path, path)
}

func unlockFile(f *os.File, err error) error {
	if f == nil {
		return err
	}
	return errors.Join(err, f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fileError("open", dir, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fileError("sync", dir, err)
	}
	return nil
}

func fileError(verb, path string, err error) error {
	e := thole.Errorf(thole.CodeUnavailable, "open store: %s %s: %w", verb, path, err)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return e.WithHint("the home must be a directory you can write; choose one with --home or THOLE_HOME")
	}
	return e
}
