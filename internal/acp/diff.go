package acp

import (
	"strconv"
	"strings"

	"github.com/tholehq/thole/protocol/app"
)

// differences are one file's change as an editor shows it: text before and after. A change
// that comes as a patch has one for each hunk, with the lines around it.
func differences(c app.FileChange, path string) (out []toolContent, line int) {
	whole := func(before, after *string) []toolContent {
		return []toolContent{{Type: "diff", Path: path, OldText: before, NewText: after}}
	}
	empty := ""
	switch c.Kind.Type { // always the file's content, also where a line of it looks like a patch
	case "add":
		return whole(nil, &c.Diff), 1
	case "delete":
		return whole(&c.Diff, &empty), 1
	}
	hunks := hunksOf(c.Diff)
	if len(hunks) == 0 { // moved, or not known yet
		return nil, 1
	}
	for _, h := range hunks {
		out = append(out, toolContent{Type: "diff", Path: path, OldText: &h.before, NewText: &h.after})
	}
	return out, hunks[0].line
}

// hunk is a stretch of a file before and after its change; line is where it is afterwards.
type hunk struct {
	before, after string
	line          int
}

// hunksOf reads a unified patch of one file. Other text has no hunks.
func hunksOf(patch string) []hunk {
	var out []hunk
	var before, after strings.Builder
	line, oldLeft, newLeft := 0, 0, 0
	last := byte(' ')
	flush := func() {
		if line > 0 {
			out = append(out, hunk{before.String(), after.String(), line})
		}
		before.Reset()
		after.Reset()
		line = 0
	}
	for text := range strings.Lines(patch) {
		if oldLeft <= 0 && newLeft <= 0 && strings.HasPrefix(text, "@@ ") {
			flush()
			var ok bool
			if line, oldLeft, newLeft, ok = hunkHead(text); !ok {
				return nil
			}
			continue
		}
		if line == 0 {
			continue // the names of the files
		}
		switch text[0] {
		case '-':
			before.WriteString(text[1:])
			oldLeft--
		case '+':
			after.WriteString(text[1:])
			newLeft--
		case '\\': // no newline at the end
			if last != '+' {
				chop(&before)
			}
			if last != '-' {
				chop(&after)
			}
		default:
			rest := strings.TrimPrefix(text, " ")
			before.WriteString(rest)
			after.WriteString(rest)
			oldLeft--
			newLeft--
		}
		last = text[0]
	}
	flush()
	return out
}

func chop(b *strings.Builder) {
	s := strings.TrimSuffix(b.String(), "\n")
	b.Reset()
	b.WriteString(s)
}

// hunkHead reads @@ -1,2 +3,4 @@.
func hunkHead(text string) (line, before, after int, ok bool) {
	fields := strings.Fields(text)
	if len(fields) < 3 {
		return 0, 0, 0, false
	}
	_, before, okOld := span(fields[1], "-")
	line, after, okNew := span(fields[2], "+")
	return max(line, 1), before, after, okOld && okNew
}

func span(s, sign string) (at, n int, ok bool) {
	s, ok = strings.CutPrefix(s, sign)
	first, count, several := strings.Cut(s, ",")
	at, err := strconv.Atoi(first)
	n = 1
	if several && err == nil {
		n, err = strconv.Atoi(count)
	}
	return at, n, ok && err == nil
}
