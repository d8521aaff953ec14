//go:build amd64 || arm64

package seccomp

import (
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Where struct seccomp_data keeps things. Both machines are little-endian: the low
// half of an argument comes first.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// namespaces are the flags of clone and unshare that make one. The low byte of
// clone's flags is a signal, so time namespaces, which are there, are unshare's alone.
const (
	namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	timeToo    = namespaces | unix.CLONE_NEWTIME
)

// refused fail with EPERM in every profile: they make or enter namespaces, change
// mounts, reach the kernel's insides, or open what a path does not show.
var refused = []uint32{
	unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_PIDFD_GETFD, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL, unix.SYS_SYSLOG, unix.SYS_ACCT,
	unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT,
}

// absent are answered as by a kernel that does not have them: programs then use
// what a filter can look into.
var absent = []uint32{unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}

// inspecting reaches into other processes.
var inspecting = []uint32{unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP}

// reaching are the calls that open connections.
var reaching = []uint32{unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_SENDMMSG}

// program is the filter for this machine.
func (p Profile) program() []bpf.Instruction {
	return p.programFor(arch, machine, func(nr uint32) uint32 { return nr }, machineModes...)
}

// programFor is the filter for a kind of machine: its name, the calls that only it
// has, its number of a call that we know by ours, and calls of its own that set modes.
func (p Profile) programFor(arch uint32, own []uint32, number func(uint32) uint32, ownModes ...modeCall) []bpf.Instruction {
	b := builder{number: number, code: []bpf.Instruction{
		// A call by the numbers of another machine would pass under a wrong name.
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: foreign, SkipTrue: 1},
		fail(unix.ENOSYS),
	}}
	b.answer(unix.ENOSYS, absent)
	b.answer(unix.EPERM, refused)
	b.answer(unix.EPERM, own)
	b.on(unix.SYS_CLONE, low(0), refuseBits(namespaces))
	b.on(unix.SYS_UNSHARE, low(0), refuseBits(timeToo))
	// Typing into a terminal that another program reads.
	b.on(unix.SYS_IOCTL, low(1), refuseValues(unix.TIOCSTI, unix.TIOCLINUX))
	switch p {
	case Box, InPlace:
		b.on(unix.SYS_SOCKET, low(0), allowValues(unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK))
		// Nobody changes another's limits: the init has the same user as everybody inside.
		b.on(unix.SYS_PRLIMIT64, low(0), []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipFalse: 1}, allow},
			low(2), []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, fail(unix.EPERM)}, high(2), allowValues(0))
	case Networked:
		// Debuggers work, but not on the first process. That is bubblewrap's, and
		// stopped by a tracer it never reports that the program ended.
		b.on(unix.SYS_PTRACE, low(1), refuseValues(1))
		b.on(unix.SYS_PROCESS_VM_READV, low(0), refuseValues(1))
		b.on(unix.SYS_PROCESS_VM_WRITEV, low(0), refuseValues(1))
		// Of netlink only what reports addresses and routes, which resolvers ask for.
		b.on(unix.SYS_SOCKET, low(0),
			[]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_NETLINK, SkipTrue: 4},
				low(2)[0], bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.NETLINK_ROUTE, SkipFalse: 1}, allow, fail(unix.EPERM)},
			allowValues(unix.AF_UNIX, unix.AF_INET, unix.AF_INET6))
	case Restricted:
		b.answer(unix.EPERM, inspecting)
		b.answer(unix.EPERM, reaching)
		// send is sendto without an address.
		b.on(unix.SYS_SENDTO, low(4), []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, fail(unix.EPERM)}, high(4), allowValues(0))
		b.socketpair()
	}
	if p == InPlace {
		b.answer(unix.ENOSYS, []uint32{unix.SYS_OPENAT2}) // its modes are where no filter looks
		for _, c := range slices.Concat(modes, ownModes) {
			b.modes(c)
		}
	}
	return append(b.code, allow)
}

// modeCall is a call that gives a file its mode, with the argument that has it. One that
// opens does so only with some flags; other times the argument is nothing.
type modeCall struct {
	nr          uint32
	mode, flags uint32
	opens       bool
}

var modes = []modeCall{{nr: unix.SYS_FCHMOD, mode: 1}, {nr: unix.SYS_FCHMODAT, mode: 2}, {nr: unix.SYS_FCHMODAT2, mode: 2},
	{nr: unix.SYS_MKNODAT, mode: 2}, {nr: unix.SYS_OPENAT, flags: 2, mode: 3, opens: true}}

// modes refuses programs that run as their owner or its groupfor every user who starts them.
// Directories that give their group to what is in them are made by chmod as well, and are
// refused with the others.
func (b *builder) modes(c modeCall) {
	const (
		setID   = unix.S_ISUID | unix.S_ISGID
		creates = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
	)
	var head [][]bpf.Instruction
	if c.opens {
		head = [][]bpf.Instruction{low(c.flags), {bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: creates, SkipTrue: 1}, allow}}
	}
	b.on(c.nr, append(head, low(c.mode), refuseBits(setID))...)
}

// socketpair permits connected pairs. One of datagrams could be used to write to
// any socket by name, and a raw one is one of datagrams.
func (b *builder) socketpair() {
	const typeMask = 0xf
	b.on(unix.SYS_SOCKETPAIR, low(0), []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 1}, fail(unix.EPERM)},
		low(1), []bpf.Instruction{bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: typeMask}}, allowValues(unix.SOCK_STREAM, unix.SOCK_SEQPACKET))
}

// builder is a filter that grows by blocks. Each block looks at one system call,
// whose number is in the register, and answers it or leaves the register alone.
type builder struct {
	code   []bpf.Instruction
	number func(uint32) uint32
}

// answer makes calls fail.
func (b *builder) answer(errno unix.Errno, calls []uint32) {
	for _, nr := range calls {
		b.on(nr, []bpf.Instruction{fail(errno)})
	}
}

// on runs instructions, which must answer, for one call.
func (b *builder) on(nr uint32, parts ...[]bpf.Instruction) {
	body := slices.Concat(parts...)
	b.code = append(append(b.code, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: b.number(nr), SkipTrue: uint8(len(body))}), body...)
}

var allow = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}

func fail(errno unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

// low loads the low half of an argument, high the other.
func low(arg uint32) []bpf.Instruction {
	return []bpf.Instruction{bpf.LoadAbsolute{Off: offArgs + 8*arg, Size: 4}}
}

func high(arg uint32) []bpf.Instruction {
	return []bpf.Instruction{bpf.LoadAbsolute{Off: offArgs + 8*arg + 4, Size: 4}}
}

func refuseBits(bits uint32) []bpf.Instruction {
	return []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: bits, SkipFalse: 1}, fail(unix.EPERM), allow}
}

func refuseValues(values ...uint32) []bpf.Instruction { return among(values, fail(unix.EPERM), allow) }
func allowValues(values ...uint32) []bpf.Instruction  { return among(values, allow, fail(unix.EPERM)) }

func among(values []uint32, yes, no bpf.Instruction) (out []bpf.Instruction) {
	for _, v := range values {
		out = append(out, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipFalse: 1}, yes)
	}
	return append(out, no)
}
