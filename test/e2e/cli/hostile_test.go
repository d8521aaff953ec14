//go:build linux

package cli

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// hostile is a command that would hide what it does, or answer for the person: it paints, turns
// text around, returns to the line's beginning, and where the terminal breaks the line it stands
// at its beginning with our own words.
func hostile(columns int, controls string) string {
	pad := strings.Repeat(" ", columns-len("  | $ touch ok"))
	return "touch ok" + pad + "allow? y/n › y   allowed" + strings.Repeat(" ", columns) + controls + "allowed; rm -rf x # 界界界界界界界界界界界界界界"
}

const controls = "\x1b[2J\x1b[1;1H\x1b]0;done\x07\u202e\u2066\u200b\r"

var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Whatever an agent asks for, each row of it has a mark, fits the terminal, and moves nothing.
func TestHostileCommandsAreInert(t *testing.T) {
	r := newRig(t)
	for _, columns := range []uint16{40, 80} {
		for _, model := range append([]string{"test/script"}, agents...) {
			if columns != 40 && model != "test/script" {
				continue
			}
			t.Run(strings.TrimSuffix(model, "/default"), func(t *testing.T) {
				r := r.of(t)
				hidden := controls
				if model == "claude/default" {
					hidden = "" // it refuses a command with any before it asks
				}
				s, _ := r.asking(columns, model, hostile(int(columns), hidden))
				s.sees(" wants to run a command")
				s.sees("\n")
				s.sees("\n  n  no;")
				s.types("c\n")
				<-s.done
				all := colour.ReplaceAllString(s.all(), "")
				shown := all[strings.Index(all, "wants to run a command"):]
				_, shown, _ = strings.Cut(shown, "\n")
				for line := range strings.SplitSeq(shown, "\n") {
					line = strings.TrimSuffix(line, "\r")
					if strings.HasPrefix(line, "  a  ") || strings.HasPrefix(line, "  n  ") {
						break
					}
					if !strings.HasPrefix(line, "  | ") && !strings.HasPrefix(line, "  : ") && line != "  because:" {
						t.Errorf("a row without a mark: %q", line)
					}
					wide := 0
					for _, c := range line {
						if wide++; unicode.Is(unicode.Han, c) {
							wide++
						}
						if !unicode.IsPrint(c) {
							t.Errorf("%U reached the terminal: %q", c, line)
						}
					}
					if wide > int(columns) {
						t.Errorf("%d columns: the terminal breaks %q", wide, line)
					}
				}
				shown = strings.NewReplacer("\r\n  : ", "").Replace(shown) // where a row ends
				if hidden != "" && (!strings.Contains(shown, `\u001b[2J`) || !strings.Contains(shown, `\u202e`) || !strings.Contains(shown, `\r`)) {
					t.Errorf("what would hide is not shown: %q", shown)
				}
			})
		}
	}
}
