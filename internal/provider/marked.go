package provider

import "strings"

// Marked is the diff of a whole file that is added ("+") or deleted ("-"): its content with
// a mark before each line.
func Marked(mark, content string) string {
	if content == "" {
		return ""
	}
	var b strings.Builder
	for line := range strings.Lines(content) {
		b.WriteString(mark + line)
	}
	if !strings.HasSuffix(content, "\n") {
		b.WriteString("\n\\ No newline at end of file\n")
	}
	return b.String()
}
