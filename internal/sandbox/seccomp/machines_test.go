//go:build linux && (amd64 || arm64)

package seccomp

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// By name, what the profiles refuse to a call whose arguments are all zero.
var (
	refusedNames = strings.Fields(`SETNS MOUNT UMOUNT2 PIVOT_ROOT OPEN_TREE OPEN_TREE_ATTR MOVE_MOUNT FSOPEN FSCONFIG FSMOUNT FSPICK MOUNT_SETATTR
		BPF PERF_EVENT_OPEN USERFAULTFD KEYCTL ADD_KEY REQUEST_KEY KEXEC_LOAD KEXEC_FILE_LOAD INIT_MODULE FINIT_MODULE DELETE_MODULE
		OPEN_BY_HANDLE_AT PIDFD_GETFD LOOKUP_DCOOKIE NFSSERVCTL SYSLOG ACCT QUOTACTL QUOTACTL_FD SWAPON SWAPOFF REBOOT SOCKET`)
	absentNames     = strings.Fields(`CLONE3 IO_URING_SETUP IO_URING_ENTER IO_URING_REGISTER`)
	restrictedNames = strings.Fields(`PTRACE PROCESS_VM_READV PROCESS_VM_WRITEV KCMP CONNECT BIND LISTEN ACCEPT ACCEPT4 SENDMMSG SOCKETPAIR`)
	// ownNames are of one kind of machine alone.
	ownNames = map[string][]string{"amd64": strings.Fields(`IOPL IOPERM MODIFY_LDT USELIB CREATE_MODULE`), "arm64": nil}
	archs    = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}
)

// numbersOf are a machine's system calls by name, as the library of both lists them.
func numbersOf(t *testing.T, machine string) map[string]uint32 {
	t.Helper()
	lib, err := build.Import("golang.org/x/sys/unix", ".", build.FindOnly)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(lib.Dir, "zsysnum_linux_"+machine+".go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]uint32{}
	for _, d := range file.Decls {
		for _, spec := range d.(*ast.GenDecl).Specs {
			v := spec.(*ast.ValueSpec)
			n, err := strconv.ParseUint(v.Values[0].(*ast.BasicLit).Value, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			out[strings.TrimPrefix(v.Names[0].Name, "SYS_")] = uint32(n)
		}
	}
	if len(out) < 300 {
		t.Fatalf("%s has %d system calls", machine, len(out))
	}
	return out
}

// For both kinds of machine every system call that there is meets the filter of that
// machine, and the answer is the one that its name calls for.
func TestEveryCallOfBothMachines(t *testing.T) {
	here := numbersOf(t, runtime.GOARCH)
	ownCalls := machine
	for machine, name := range archs {
		numbers := numbersOf(t, machine)
		const theirs = 1 << 31 // marks a number that is of that machine already
		number := func(nr uint32) uint32 {
			if nr&theirs != 0 {
				return nr &^ theirs
			}
			for call, n := range here {
				if there, ok := numbers[call]; n == nr && ok {
					return there
				}
			}
			t.Fatalf("%s has no call that is %d here", machine, nr)
			return 0
		}
		var own, listed []uint32
		for _, call := range ownNames[machine] {
			own, listed = append(own, theirs|numbers[call]), append(listed, numbers[call])
		}
		if machine == runtime.GOARCH && (name != arch || !slices.Equal(listed, ownCalls)) {
			t.Errorf("%s: its own calls are %v, and %v in the filter", machine, listed, ownCalls)
		}
		want := func(p Profile, call string) uint32 {
			switch {
			case slices.Contains(absentNames, call):
				return gone
			case slices.Contains(refusedNames, call), slices.Contains(ownNames[machine], call), p == Restricted && slices.Contains(restrictedNames, call):
				return eperm
			}
			return yes
		}
		for _, p := range []Profile{Box, Networked, Restricted} {
			program := p.programFor(name, own, number)
			for call, nr := range numbers {
				if got := run(t, program, name, nr); got != want(p, call) {
					t.Errorf("%s, profile %d, %s (%d): %#x, want %#x", machine, p, call, nr, got, want(p, call))
				}
			}
			for _, other := range archs {
				if got := run(t, program, other, numbers["READ"]); other != name && got != unix.SECCOMP_RET_KILL_PROCESS {
					t.Errorf("%s, profile %d: a call of machine %#x: %#x", machine, p, other, got)
				}
			}
		}
	}
}
