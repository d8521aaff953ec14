package daemon

import (
	"bufio"
	"bytes"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

// trim gives back what only starting needed, because a daemon mostly waits: free
// heap, and the pages of the program itself, which are read from its file again
// when they are used. It never fails; at worst nothing is given back.
func trim() {
	debug.FreeOSMemory()
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	var from, to uintptr
	for lines := bufio.NewScanner(bytes.NewReader(smaps)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		switch {
		case len(f) >= 5 && strings.Contains(f[0], "-"):
			from, to = 0, 0
			if (f[1] == "r-xp" || f[1] == "r--p") && strings.HasSuffix(lines.Text(), " "+exe) {
				from, to = span(f[0])
			}
		case len(f) == 3 && f[0] == "Anonymous:" && f[1] == "0" && to > from:
			// A page that was written to, as by the loader, is not in the file: such
			// a mapping stays.
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED)
		}
	}
}

func span(s string) (from, to uintptr) {
	a, b, _ := strings.Cut(s, "-")
	x, err := strconv.ParseUint(a, 16, 64)
	y, err2 := strconv.ParseUint(b, 16, 64)
	if err != nil || err2 != nil {
		return 0, 0
	}
	return uintptr(x), uintptr(y)
}
