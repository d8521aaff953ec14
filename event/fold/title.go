package fold

import (
	"strings"
	"unicode"
)

// maxTitle bounds a title, in characters.
const maxTitle = 60

// Title is what a list shows of a thread: the name that a user gave it, else a
// short form of the first message. It is derived, so a name wins from the moment
// that there is one; "" for a thread without either.
func (t Thread) Title() string {
	if t.Name != "" {
		return t.Name
	}
	return Title(t.Preview)
}

// Title is a message as the name of a thread: its first line that says something, without
// marks of Markdown before it, on one line and bounded at a word; "" for a message
// without text.
func Title(message string) string {
	text := ""
	for line := range strings.Lines(message) {
		line = strings.Join(strings.Fields(strings.Map(shown, line)), " ")
		if text == "" {
			text = line
		}
		if strings.ContainsFunc(line, says) && !strings.HasPrefix(line, "```") {
			text = line
			break
		}
	}
	if bare := strings.TrimLeft(text, "#>*-`~_ "); strings.ContainsFunc(bare, says) && strings.ContainsAny(text[:len(text)-len(bare)], " `*_") {
		text = bare
	}
	if r := []rune(text); len(r) > maxTitle {
		cut := string(r[:maxTitle+1])
		if i := strings.LastIndexByte(cut, ' '); i > 0 {
			return cut[:i] + "…"
		}
		return string(r[:maxTitle]) + "…"
	}
	return text
}

func says(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// shown drops what has no place in a line of text.
func shown(r rune) rune {
	if unicode.IsSpace(r) {
		return ' '
	}
	if !unicode.IsPrint(r) {
		return -1
	}
	return r
}
