//go:build linux

package sandbox

import (
	"errors"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forking holds the threads that have started processes. Their end would deliver
// the parent-death signal to those processes, so they are never used up.
var forking sync.Map // tid → struct{}

// MarkForkingThread records that the calling thread, which the caller has locked,
// starts a process with a parent-death signal.
func MarkForkingThread() { forking.Store(unix.Gettid(), struct{}{}) }

// Confined runs f on a thread of its own that Landlock confines to what p allows
// to read and to write, and ends the thread afterwards. It is the second line
// after Access: entries inside an allowed directory that allow less are not
// expressible in Landlock and are Access's alone. On a kernel without Landlock f
// runs unconfined; if Landlock fails in any other way f does not run.
func Confined(p *Policy, f func()) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		tid := unix.Gettid()
		if _, used := forking.Load(tid); used || tid == unix.Getpid() {
			// Another goroutine gets another thread while this one is locked.
			err := Confined(p, f)
			runtime.UnlockOSThread()
			done <- err
			return
		}
		if err := p.restrictThread(); err != nil && !errors.Is(err, errNoLandlock) {
			done <- refuse("landlock: %v", err)
			return
		}
		f()
		done <- nil
		// Still locked: the runtime ends the thread with the goroutine.
	}()
	return <-done
}

const (
	llRead  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	llWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	llFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

var errNoLandlock = errors.New("landlock is not available")

func (p *Policy) restrictThread() error {
	abi, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if no != 0 || int(abi) < 1 {
		return errNoLandlock
	}
	write := uint64(llWrite)
	if abi >= 2 {
		write |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		write |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	attr := unix.LandlockRulesetAttr{Access_fs: llRead | write}
	set, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr.Access_fs), 0)
	if no != 0 {
		return no
	}
	defer unix.Close(int(set))
	for _, r := range p.rules {
		if r.access == None || !r.exists {
			continue
		}
		allow := uint64(llRead)
		if r.access == Write {
			allow |= write
		}
		if err := allowBeneath(int(set), r.path, allow); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, no := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); no != 0 {
		return no
	}
	return nil
}

func allowBeneath(set int, path string, allow uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil // gone since Compile: nothing to allow
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		allow &= llFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: allow, Parent_fd: int32(fd)}
	_, _, no := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if no != 0 {
		return no
	}
	return nil
}
