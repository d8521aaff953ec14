package sandbox

import (
	"os"
	"slices"
	"strconv"

	"github.com/tholehq/thole/internal/sandbox/seccomp"
)

// Box is a bubblewrap command that grows by mounts: the only builder of such
// commands, for programs of the exec-server and for executors.
type Box struct {
	args  []string
	files []*os.File
}

// isolation is common to every sandbox. Capabilities go because a program that
// keeps them could remount its read-only tree writable; the pid namespace goes
// with its first process, so nothing outlives a kill.
var isolation = []string{"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL"}

// NewBox begins a command with what every sandbox has, and further flags.
func NewBox(flags ...string) *Box { return &Box{args: slices.Concat(isolation, flags)} }

// Add appends arguments.
func (b *Box) Add(args ...string) *Box {
	b.args = append(b.args, args...)
	return b
}

// Pass hands a file to bubblewrap and returns the number of its descriptor there.
func (b *Box) Pass(f *os.File) string {
	b.files = append(b.files, f)
	return strconv.Itoa(2 + len(b.files))
}

// Files become descriptors 3 and up; the caller that starts the command closes them then.
func (b *Box) Files() []*os.File { return b.files }

// Filter takes system calls from the program.
func (b *Box) Filter(p seccomp.Profile) error {
	f, err := p.File()
	if err != nil {
		return err
	}
	b.Add("--seccomp", b.Pass(f))
	return nil
}

// Hand gives executord, which makes boxes inside this one, a /proc and the
// harmless devices. Nothing of /proc is covered: the kernel lets nobody mount it again
// who does not see all of it. Kernel settings belong to root of the host, who this
// program must not be.
func (b *Box) Hand() *Box { return b.Add("--proc", "/proc", "--dev", "/dev") }

// Kernel gives the program a /proc of its own namespace and the harmless devices.
// Kernel settings are read-only: they belong to root of the host, and a server that
// runs as root would otherwise hand that on, capabilities or not. No proc file
// system can be mounted in a sandbox inside this one: the kernel keeps what is
// covered here covered there.
func (b *Box) Kernel() *Box {
	b.Add("--proc", "/proc", "--dev", "/dev")
	for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi"} {
		if _, err := os.Stat(path); err == nil {
			b.Add("--ro-bind", path, path)
		}
	}
	return b
}

// First covers what /proc shows of the first process, which is bubblewrap's where the
// program is not started as that: its memory can be opened for writing there, which the
// filter of calls on other processes does not see.
func (b *Box) First() *Box { return b.Add("--tmpfs", "/proc/1", "--remount-ro", "/proc/1") }

// Args are the arguments so far.
func (b *Box) Args() []string { return slices.Clone(b.args) }

// Command is the whole command line after bubblewrap's own name.
func (b *Box) Command(dir string, argv ...string) []string {
	return slices.Concat(b.args, []string{"--chdir", dir, "--"}, argv)
}
