package appserver

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tholehq/thole/event"
)

// maxDiff bounds a turn's whole diff; a turn that changes more
// is sent as its items only.
const maxDiff = 256 << 10

// turnDiff is changes in their order as one patch, "" when it is too large. A file
// that was changed twice is in it twice: the pieces apply one after the other.
func turnDiff(edits []event.FileChange) string {
	var b strings.Builder
	for _, c := range edits {
		if b.Len()+len(c.Diff) > maxDiff {
			return ""
		}
		patch(&b, c)
	}
	return b.String()
}

// patch writes one change in git's form. Agents report hunks with or without a
// header, or a new or deleted file as marked lines only.
func patch(b *strings.Builder, c event.FileChange) {
	to := cmp.Or(c.Move, c.Path)
	fmt.Fprintf(b, "diff --git a/%s b/%s\n", c.Path, to)
	from, onto := "a/"+c.Path, "b/"+to
	switch c.Kind {
	case "add":
		b.WriteString("new file mode 100644\n")
		from = "/dev/null"
	case "delete":
		b.WriteString("deleted file mode 100644\n")
		onto = "/dev/null"
	}
	if c.Move != "" {
		fmt.Fprintf(b, "rename from %s\nrename to %s\n", c.Path, c.Move)
	}
	hunks := c.Diff
	if at := strings.Index(hunks, "@@"); at > 0 && strings.HasSuffix(hunks[:at], "\n") && strings.Contains(hunks[:at], "--- ") {
		hunks = hunks[at:]
	}
	if hunks == "" {
		return
	}
	fmt.Fprintf(b, "--- %s\n+++ %s\n", from, onto)
	if !strings.HasPrefix(hunks, "@@") {
		switch n := strings.Count(hunks, "\n"); c.Kind {
		case "add":
			fmt.Fprintf(b, "@@ -0,0 +1,%d @@\n", n)
		case "delete":
			fmt.Fprintf(b, "@@ -1,%d +0,0 @@\n", n)
		}
	}
	b.WriteString(hunks)
	if !strings.HasSuffix(hunks, "\n") {
		b.WriteByte('\n')
	}
}
