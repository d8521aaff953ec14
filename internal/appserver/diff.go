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

// patch writes one change in git's form.
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
	text := hunks(c)
	if text == "" {
		return
	}
	fmt.Fprintf(b, "--- %s\n+++ %s\n%s", from, onto, text)
	if !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
}

// fileDiff is a change as Codex sends it: the content of a file that is added or
// deleted, and the hunks of any other.
func fileDiff(c event.FileChange) string {
	if c.Kind != "add" && c.Kind != "delete" {
		return hunks(c)
	}
	var b strings.Builder
	whole := true
	for line := range strings.Lines(hunks(c)) {
		switch line[0] {
		case mark(c.Kind):
			b.WriteString(line[1:])
		case '\\':
			whole = false // no newline at the end of the file
		}
	}
	if !whole {
		return strings.TrimSuffix(b.String(), "\n")
	}
	return b.String()
}

func mark(kind string) byte {
	if kind == "delete" {
		return '-'
	}
	return '+'
}

// hunks are a change's without a header, in the short form of their ranges. Agents
// report hunks with or without a header, or a new or deleted file as marked lines only.
func hunks(c event.FileChange) string {
	text := headless(c.Diff)
	if text == "" {
		return ""
	}
	if strings.HasPrefix(text, "@@") {
		var b strings.Builder
		for line := range strings.Lines(text) {
			b.WriteString(shortRange(line))
		}
		return b.String()
	}
	n := 0
	for line := range strings.Lines(text) {
		if line[0] == mark(c.Kind) {
			n++
		}
	}
	switch c.Kind {
	case "add":
		return fmt.Sprintf("@@ -0,0 +%s @@\n%s", span(1, n), text)
	case "delete":
		return fmt.Sprintf("@@ -%s +0,0 @@\n%s", span(1, n), text)
	}
	return text
}

// headless is a diff from its first hunk on. What comes before must look like a header:
// the lines of a deleted file may begin with the same marks.
func headless(diff string) string {
	at := 0
	for line := range strings.Lines(diff) {
		if strings.HasPrefix(line, "@@ ") {
			return diff[at:]
		}
		header := false
		for _, word := range []string{"--- ", "+++ ", "Index: ", "index ", "diff ", "====", "new file mode ", "deleted file mode ", "rename ", "similarity "} {
			header = header || strings.HasPrefix(line, word)
		}
		if !header {
			break
		}
		at += len(line)
	}
	return diff
}

// shortRange leaves out the length of a range of one line, as git and Codex do.
func shortRange(line string) string {
	var a, n, b, m int
	if !strings.HasPrefix(line, "@@ ") {
		return line
	}
	if k, _ := fmt.Sscanf(line, "@@ -%d,%d +%d,%d @@", &a, &n, &b, &m); k != 4 {
		return line
	}
	_, rest, _ := strings.Cut(line[2:], "@@")
	return "@@ -" + span(a, n) + " +" + span(b, m) + " @@" + rest
}

func span(from, n int) string {
	if n == 1 {
		return fmt.Sprint(from)
	}
	return fmt.Sprintf("%d,%d", from, n)
}
