package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// stage is where Descend shows files of root to a user who may not pass the
// directories above them. It is there on every system, and what is mounted on it
// is seen by the program that Descend becomes and nobody else.
const stage = "/tmp"

// Staged is the path under which the program finds the i-th file of Descend.
func Staged(i int) string { return filepath.Join(stage, strconv.Itoa(i)) }

// Descend makes this process, which is root's, a program of another user: argv,
// with the given files and directories, some of them Lent, at Staged, and with so many descriptors, from 3
// on, which were handed to it and are closed with all others otherwise. A user namespace alone would not
// do: who enters it as root of the host stays that for files. It returns only when
// it failed.
func Descend(uid, keep int, files, argv []string) error {
	if uid <= 0 || len(argv) == 0 {
		return fmt.Errorf("descend to user %d: another user and a program are required", uid)
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread() // namespaces belong to a thread, and the program to the one that calls exec
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	if err := show(uid, files); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return syscall.Setgroups(nil) },
		func() error { return syscall.Setresgid(uid, uid, uid) },
		func() error { return syscall.Setresuid(uid, uid, uid) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("become user %d: %w", uid, err)
		}
	}
	for fd := 3; fd < 3+keep; fd++ {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("keep descriptor %d: %w", fd, err)
		}
	}
	return fmt.Errorf("start %s: %w", program, syscall.Exec(program, argv, os.Environ()))
}

// show mounts the files on the stage. They are opened first, because some may lie
// where the stage is; one that is not there is left out.
func show(uid int, files []string) error {
	open := make([]int, len(files))
	for i, path := range files {
		var fd int
		var err error
		if path, lent := isLent(path); lent {
			fd, err = lend(path, uid)
		} else {
			fd, err = unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("open %s: %w", path, err)
		}
		if open[i] = fd; err != nil {
			open[i] = -1
		}
	}
	if err := unix.Mount("thole", stage, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return fmt.Errorf("mount the stage: %w", err)
	}
	for i, fd := range open {
		if fd < 0 {
			continue
		}
		_, lent := isLent(files[i])
		if err := showOne(fd, Staged(i), lent); err != nil {
			return fmt.Errorf("show %s: %w", files[i], err)
		}
	}
	return nil
}

func showOne(fd int, at string, mounted bool) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	var err error
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = os.Mkdir(at, 0o755)
	} else {
		err = os.WriteFile(at, nil, 0o644)
	}
	if err != nil {
		return err
	}
	if mounted {
		return unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	return unix.Mount("/proc/self/fd/"+strconv.Itoa(fd), at, "", unix.MS_BIND|unix.MS_REC, "")
}
