//go:build linux && (amd64 || arm64)

package seccomp

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// judge is the filter's answer to a call, by the reference machine. That one reads
// words big-endian where the kernel takes them as they are.
func judge(t *testing.T, p Profile, machine, nr uint32, args ...uint64) uint32 {
	t.Helper()
	return run(t, p.program(), machine, nr, args...)
}

func run(t *testing.T, program []bpf.Instruction, machine, nr uint32, args ...uint64) uint32 {
	t.Helper()
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offNumber:], nr)
	binary.BigEndian.PutUint32(data[offArch:], machine)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[offArgs+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[offArgs+8*i+4:], uint32(a>>32))
	}
	got, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(got)
}

const (
	yes   = unix.SECCOMP_RET_ALLOW
	eperm = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	gone  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

func TestEachCall(t *testing.T) {
	call := func(nr uint32, args ...uint64) []uint64 { return append([]uint64{uint64(nr)}, args...) }
	for name, c := range map[string]struct {
		call                       []uint64
		box, networked, restricted uint32
	}{
		"read":                    {call(unix.SYS_READ), yes, yes, yes},
		"execve":                  {call(unix.SYS_EXECVE), yes, yes, yes},
		"clone of a thread":       {call(unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_THREAD|unix.CLONE_SIGHAND|unix.CLONE_SETTLS), yes, yes, yes},
		"fork by clone":           {call(unix.SYS_CLONE, uint64(unix.SIGCHLD)), yes, yes, yes},
		"clone with a signal 128": {call(unix.SYS_CLONE, unix.CLONE_NEWTIME), yes, yes, yes},
		"clone, user":             {call(unix.SYS_CLONE, unix.CLONE_NEWUSER|uint64(unix.SIGCHLD)), eperm, eperm, eperm},
		"clone, network":          {call(unix.SYS_CLONE, unix.CLONE_NEWNET), eperm, eperm, eperm},
		"clone, mounts, high":     {call(unix.SYS_CLONE, 1<<40|unix.CLONE_NEWNS), eperm, eperm, eperm},
		"clone3":                  {call(unix.SYS_CLONE3), gone, gone, gone},
		"io_uring":                {call(unix.SYS_IO_URING_SETUP), gone, gone, gone},
		"unshare files":           {call(unix.SYS_UNSHARE, unix.CLONE_FILES), yes, yes, yes},
		"unshare user":            {call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER), eperm, eperm, eperm},
		"unshare time":            {call(unix.SYS_UNSHARE, unix.CLONE_NEWTIME), eperm, eperm, eperm},
		"mount":                   {call(unix.SYS_MOUNT), eperm, eperm, eperm},
		"move_mount":              {call(unix.SYS_MOVE_MOUNT), eperm, eperm, eperm},
		"bpf":                     {call(unix.SYS_BPF), eperm, eperm, eperm},
		"keyctl":                  {call(unix.SYS_KEYCTL), eperm, eperm, eperm},
		"pidfd_getfd":             {call(unix.SYS_PIDFD_GETFD), eperm, eperm, eperm},
		"pidfd_open":              {call(unix.SYS_PIDFD_OPEN), yes, yes, yes},
		"open_by_handle_at":       {call(unix.SYS_OPEN_BY_HANDLE_AT), eperm, eperm, eperm},
		"TIOCSTI":                 {call(unix.SYS_IOCTL, 0, unix.TIOCSTI), eperm, eperm, eperm},
		"TIOCSTI, high half set":  {call(unix.SYS_IOCTL, 0, 1<<32|unix.TIOCSTI), eperm, eperm, eperm},
		"TIOCGWINSZ":              {call(unix.SYS_IOCTL, 0, unix.TIOCGWINSZ), yes, yes, yes},
		"ptrace":                  {call(unix.SYS_PTRACE, unix.PTRACE_ATTACH, 7), yes, yes, eperm},
		"ptrace of the first":     {call(unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1), yes, eperm, eperm},
		"ptrace, high half set":   {call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1<<32|1), yes, eperm, eperm},
		"process_vm_writev":       {call(unix.SYS_PROCESS_VM_WRITEV, 7), yes, yes, eperm},
		"into the first":          {call(unix.SYS_PROCESS_VM_WRITEV, 1), yes, eperm, eperm},
		"socket inet":             {call(unix.SYS_SOCKET, unix.AF_INET), yes, yes, eperm},
		"socket unix":             {call(unix.SYS_SOCKET, unix.AF_UNIX), yes, yes, eperm},
		"socket vsock":            {call(unix.SYS_SOCKET, unix.AF_VSOCK), eperm, eperm, eperm},
		"socket packet":           {call(unix.SYS_SOCKET, unix.AF_PACKET), eperm, eperm, eperm},
		"socket alg":              {call(unix.SYS_SOCKET, unix.AF_ALG), eperm, eperm, eperm},
		"socket netlink route":    {call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE), yes, yes, eperm},
		"socket netlink audit":    {call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT), yes, eperm, eperm},
		"socket netlink users":    {call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_USERSOCK), yes, eperm, eperm},   // 2, as AF_INET
		"socket netlink fib":      {call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_FIB_LOOKUP), yes, eperm, eperm}, // 10, as AF_INET6
		"socket netlink 1":        {call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, 1), yes, eperm, eperm},                       // as AF_UNIX
		"connect":                 {call(unix.SYS_CONNECT), yes, yes, eperm},
		"listen":                  {call(unix.SYS_LISTEN), yes, yes, eperm},
		"send":                    {call(unix.SYS_SENDTO, 0, 0, 0, 0, 0), yes, yes, yes},
		"sendto":                  {call(unix.SYS_SENDTO, 0, 0, 0, 0, 0x1000), yes, yes, eperm},
		"sendto, high half only":  {call(unix.SYS_SENDTO, 0, 0, 0, 0, 1<<32), yes, yes, eperm},
		"pair of streams":         {call(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC), yes, yes, yes},
		"pair of packets":         {call(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_SEQPACKET), yes, yes, yes},
		"pair of datagrams":       {call(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK), yes, yes, eperm},
		"pair of raw ones":        {call(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_RAW), yes, yes, eperm},
		"pair of another family":  {call(unix.SYS_SOCKETPAIR, unix.AF_TIPC, unix.SOCK_STREAM), yes, yes, eperm},
	} {
		for p, want := range map[Profile]uint32{Box: c.box, Networked: c.networked, Restricted: c.restricted} {
			if got := judge(t, p, arch, uint32(c.call[0]), c.call[1:]...); got != want {
				t.Errorf("%s, profile %d: %#x, want %#x", name, p, got, want)
			}
		}
	}
}

// What runs as its owner cannot be made of a person's files, by whichever call.
func TestSetIDs(t *testing.T) {
	calls := map[string][]uint64{
		"fchmod": {unix.SYS_FCHMOD, 3, 0o4755}, "fchmodat": {unix.SYS_FCHMODAT, 3, 0, 0o2755}, "fchmodat2": {unix.SYS_FCHMODAT2, 3, 0, 0o6755, 0},
		"mknodat": {unix.SYS_MKNODAT, 3, 0, unix.S_IFREG | 0o4755, 0},
		"openat":  {unix.SYS_OPENAT, 3, 0, unix.O_CREAT | unix.O_WRONLY, 0o4755}, "openat, nameless": {unix.SYS_OPENAT, 3, 0, unix.O_TMPFILE | unix.O_RDWR, 0o4755},
	}
	for name, c := range calls {
		plain := slices.Clone(c)
		for i := range plain[1:] {
			if plain[i+1]&0o6000 != 0 && plain[i+1]&0o755 == 0o755 {
				plain[i+1] &^= 0o6000
			}
		}
		for _, want := range []struct {
			p      Profile
			call   []uint64
			answer uint32
		}{{Box, c, yes}, {InPlace, c, eperm}, {InPlace, plain, yes}} {
			if got := judge(t, want.p, arch, uint32(want.call[0]), want.call[1:]...); got != want.answer {
				t.Errorf("%s %#o, profile %d: %#x, want %#x", name, want.call, want.p, got, want.answer)
			}
		}
	}
	// The argument of an open that makes nothing may be anything.
	if got := judge(t, InPlace, arch, unix.SYS_OPENAT, 3, 0, unix.O_RDONLY|unix.O_DIRECTORY, 0o7777); got != yes {
		t.Errorf("an open that makes nothing: %#x", got)
	}
	if got := judge(t, InPlace, arch, unix.SYS_OPENAT2); got != gone {
		t.Errorf("openat2: %#x", got)
	}
}

func TestForeignNumbersDoNotPass(t *testing.T) {
	for _, p := range []Profile{Box, Networked, Restricted} {
		for _, machine := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, unix.AUDIT_ARCH_AARCH64, unix.AUDIT_ARCH_X86_64} {
			if machine == arch {
				continue
			}
			if got := judge(t, p, machine, unix.SYS_READ); got != unix.SECCOMP_RET_KILL_PROCESS {
				t.Errorf("machine %#x, profile %d: %#x", machine, p, got)
			}
		}
		for _, nr := range []uint32{0x40000000, 0x40000000 + 520, 0xffffffff} {
			if got := judge(t, p, arch, nr); got != gone {
				t.Errorf("call %#x, profile %d: %#x", nr, p, got)
			}
		}
	}
}

// TestFilesAreReadAlone: starts at the same time do not read each other's filter away.
func TestFilesAreReadAlone(t *testing.T) {
	want, err := Restricted.Program()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		f, err := Restricted.File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		got := make([]byte, len(want)+1)
		if n, _ := f.Read(got); string(got[:n]) != string(want) {
			t.Fatalf("read %d of %d bytes", n, len(want))
		}
	}
	if _, err := Profile(200).File(); err == nil {
		t.Error("an unknown profile has a filter")
	}
}
