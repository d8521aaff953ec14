package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A user's directory that another user is to work in as if it were its owner is lent to
// it: shown through a mount that exchanges the two (an idmapped mount). On the disk nothing
// changes, and what the other one makes there belongs to the owner.

const lentMark = "lent:"

// Lent names a file of Descend whose owner the program's user is to be.
func Lent(path string) string { return lentMark + path }

func isLent(path string) (string, bool) { return strings.CutPrefix(path, lentMark) }

// CheckLend tries whether a path can be lent: only some file systems can. It needs root.
func CheckLend(path string) error {
	fd, err := lend(path, math.MaxInt32)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// lend is a mount of a path, in no place yet, in which a user and the path's owner are
// exchanged, and their groups.
func lend(path string, uid int) (_ int, err error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return -1, fmt.Errorf("clone its mount: %w", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return -1, err
	}
	users, err := exchange(int(st.Uid), int(st.Gid), uid)
	if err != nil {
		return -1, err
	}
	defer users.Close()
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(users.Fd())})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) {
		return -1, fmt.Errorf("its file system (%s) cannot show files under another owner: %w", fileSystem(fd), err)
	}
	return fd, err
}

// exchange is a user namespace in which a user and the owner of files have each other's
// number, and everybody else their own.
func exchange(owner, group, uid int) (*os.File, error) {
	cmd := exec.Command("/bin/sh", "-c", "read _")
	wait, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: swapped(owner, uid), GidMappings: swapped(group, uid), GidMappingsEnableSetgroups: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	users, err := os.Open("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/user")
	wait.Close()
	_ = cmd.Wait() // it only held the namespace
	return users, err
}

// swapped maps all numbers to themselves but for two.
func swapped(a, b int) (all []syscall.SysProcIDMap) {
	if a == b {
		return []syscall.SysProcIDMap{{Size: math.MaxUint32}}
	}
	ends := []int{a, b}
	slices.Sort(ends)
	next := 0
	for i, end := range ends {
		if end > next {
			all = append(all, syscall.SysProcIDMap{ContainerID: next, HostID: next, Size: end - next})
		}
		all = append(all, syscall.SysProcIDMap{ContainerID: end, HostID: ends[1-i], Size: 1})
		next = end + 1
	}
	return append(all, syscall.SysProcIDMap{ContainerID: next, HostID: next, Size: math.MaxUint32 - next})
}

// fileSystem names that of a descriptor, for people.
func fileSystem(fd int) string {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return "unknown"
	}
	switch st.Type {
	case unix.NFS_SUPER_MAGIC:
		return "NFS"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay"
	case unix.FUSE_SUPER_MAGIC:
		return "FUSE"
	case unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "SMB"
	case unix.V9FS_MAGIC:
		return "9p"
	}
	return fmt.Sprintf("type %#x", st.Type)
}
