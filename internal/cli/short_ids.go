package cli

import "github.com/tholehq/thole/internal/daemon/threads"

func shortIDs(list []threads.Thread) []string {
	ids := make([]string, len(list))
	for i, t := range list {
		ids[i] = string(t.ID)
	}
	return beginnings(ids)
}

// beginnings are those of ids that differ among these, at least eight characters. The same
// id may be there several times.
func beginnings(ids []string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		n := min(8, len(id))
		for _, other := range ids {
			for other != id && n < len(id) && len(other) >= n && other[:n] == id[:n] {
				n++
			}
		}
		if n > 8 && n < len(id) && id[n-1] == '-' {
			n++ // a dash says nothing
		}
		out[i] = id[:n]
	}
	return out
}
