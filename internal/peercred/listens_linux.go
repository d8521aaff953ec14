package peercred

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Listens proves that a process holds the socket that listens on a TCP address,
// which a connection to it does not report. What cannot be proven is an error.
func Listens(pid int, at netip.AddrPort) error {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "0A" { // listening
				continue
			}
			if local, ok := parseLocal(f[1]); ok && local.Port() == at.Port() && (local.Addr() == at.Addr().Unmap() || local.Addr().IsUnspecified()) {
				sockets["socket:["+f[9]+"]"] = true
			}
		}
	}
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	open, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("see what process %d holds: %w", pid, err)
	}
	for _, fd := range open {
		if to, err := os.Readlink(dir + "/" + fd.Name()); err == nil && sockets[to] {
			return nil
		}
	}
	return fmt.Errorf("process %d does not listen on %s", pid, at)
}

// parseLocal reads an address of the kernel's tables: words in the machine's order.
func parseLocal(s string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(s, ":")
	raw, err := hex.DecodeString(host)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for word := range slices.Chunk(raw, 4) {
		binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
	}
	addr, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), ok
}
