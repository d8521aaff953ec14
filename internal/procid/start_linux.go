package procid

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// stat are the fields of a living process from its state on.
func stat(pid int) ([]string, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil, false
	}
	// The command name may hold spaces and brackets; fields count from the last ')'.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	return f, len(f) >= 20 && f[0] != "Z" && f[0] != "X"
}

// startOf is when a process began, in the kernel's own ticks since boot.
func startOf(pid int) (string, bool) {
	f, ok := stat(pid)
	if !ok {
		return "", false
	}
	return f[19], true
}

// SessionOf is the session of a process: the pid of the one that began it, 0 if the
// process is not there.
func SessionOf(pid int) int {
	f, ok := stat(pid)
	if !ok {
		return 0
	}
	n, _ := strconv.Atoi(f[3])
	return n
}

// Session lists the living processes of the session that leader began, whether it
// still lives or not. As long as there are any its pid is not given away, so one
// that is another process's now says that there are none.
func Session(leader Identity) []Identity {
	now := Of(leader.PID)
	if leader.Zero() || leader.Boot != boot() || now.Start != "" && now != leader {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []Identity
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || SessionOf(pid) != leader.PID {
			continue
		}
		if id := Of(pid); id.Start != "" {
			all = append(all, id)
		}
	}
	return all
}

func boot() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
