package transcript

import (
	"fmt"
	"strings"
	"time"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/platform/view"
)

// Gap stands for bytes of an output that are not kept.
func Gap(n int64) string { return fmt.Sprintf("\n… %d bytes are not kept …\n", n) }

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func usage(u view.Usage) string {
	text := fmt.Sprintf("%d tokens in, %d out", u.Input+u.CacheRead+u.CacheWrite, u.Output+u.Reasoning)
	if u.CostMicros != nil {
		text += fmt.Sprintf(", $%.4f", float64(*u.CostMicros)/1e6)
	}
	return text
}

func state(s event.ItemState) string {
	if s == "" || s == event.StateCompleted {
		return ""
	}
	return " (" + string(s) + ")"
}

// line is a text on one line.
func line(s string) string { return strings.Join(strings.Fields(s), " ") }

// longest is the length of the longest run of a character.
func longest(s string, of byte) (n int) {
	run := 0
	for i := range len(s) {
		if s[i] != of {
			run = 0
			continue
		}
		run++
		n = max(n, run)
	}
	return n
}

// fenced is code between fences that are longer than any in it.
func fenced(lang, text string) string {
	fence := strings.Repeat("`", max(3, longest(text, '`')+1))
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return fence + lang + "\n" + text + fence + "\n\n"
}

// code is a name on one line between backticks.
func code(s string) string {
	s = line(s)
	tick := strings.Repeat("`", longest(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return tick + s + tick
}

// prose is Markdown of a message as a part of a transcript: a code block that it leaves open
// is closed, and so is a comment, which would hide the rest. "" for a text without any.
func prose(text string) string {
	text = strings.TrimRight(text, " \t\r\n")
	if text == "" {
		return ""
	}
	open := ""
	for l := range strings.Lines(text) {
		bare := strings.TrimLeft(l, " ")
		if len(l)-len(bare) > 3 {
			continue
		}
		bare = strings.TrimRight(bare, " \t\r\n")
		n := 0
		for n < len(bare) && (bare[n] == '`' || bare[n] == '~') && bare[n] == bare[0] {
			n++
		}
		switch {
		case open == "" && n >= 3 && (bare[0] == '~' || !strings.Contains(bare[n:], "`")):
			open = bare[:n]
		case open != "" && n >= len(open) && n == len(bare) && bare[0] == open[0]:
			open = ""
		}
	}
	if open != "" {
		text += "\n" + open
	} else if i := strings.LastIndex(text, "<!--"); i >= 0 && !strings.Contains(text[i:], "-->") {
		text += " -->"
	}
	return text + "\n\n"
}
