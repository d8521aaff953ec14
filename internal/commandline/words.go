// Package commandline reads and writes shell command lines: the words of one, a line
// made of words, and what a line does as far as its words show. It runs nothing and
// expands nothing; a line that needs a shell to be understood has unknown actions.
package commandline

import "strings"

// Shell returns the argv line of a login shell that runs script.
func Shell(script string) string { return Join("/bin/bash", "-lc", script) }

// Script returns the script of an argv line that runs a shell, false for any other line.
func Script(argv string) (string, bool) {
	words, ok := Split(argv)
	if !ok || len(words) != 3 || words[1] != "-lc" && words[1] != "-c" {
		return "", false
	}
	switch words[0][strings.LastIndexByte(words[0], '/')+1:] {
	case "bash", "sh", "zsh":
		return words[2], true
	}
	return "", false
}

// Join quotes words for a POSIX shell, so that Split returns them again.
func Join(words ...string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		quote(&b, w)
	}
	return b.String()
}

// The ways to write a piece of a word.
const (
	bare = 1 << iota
	single
	double
)

// quote writes one word as the pieces that each fit one kind of quotes, which is how
// the Codex TUI quotes: clients compare such lines as text.
func quote(b *strings.Builder, word string) {
	if word == "" {
		b.WriteString("''")
		return
	}
	for word != "" {
		n, way := piece(word)
		switch {
		case way&bare != 0:
			b.WriteString(word[:n])
		case way&single != 0:
			b.WriteString("'" + word[:n] + "'")
		default:
			b.WriteByte('"')
			for i := range n {
				if word[i] == '"' || word[i] == '\\' {
					b.WriteByte('\\')
				}
				b.WriteByte(word[i])
			}
			b.WriteByte('"')
		}
		word = word[n:]
	}
}

// piece is how many bytes of a word can be written in one way, and which.
func piece(word string) (n, ways int) {
	ways = bare | single | double
	if word[0] == '^' { // bash takes it for history unless it comes right after a single quote
		ways, n = single, 1
	}
	for ; n < len(word); n++ {
		left := ways & fits(word[n])
		if left == 0 {
			break
		}
		ways = left
	}
	return n, ways
}

func fits(c byte) int {
	switch {
	case c == '\'' || c == '\\': // fish reads a backslash in single quotes
		return double
	case c == '^':
		return 0
	case c == '`' || c == '$' || c == '!':
		return single
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("+-./:@]_", c) >= 0:
		return bare | single | double
	}
	return single | double
}

// Split returns the words of a line as a POSIX shell sees them before any expansion;
// false when a quote is not closed.
func Split(line string) ([]string, bool) {
	var words []string
	for i := 0; i < len(line); {
		switch line[i] {
		case ' ', '\t', '\n':
			i++
			continue
		case '#':
			if end := strings.IndexByte(line[i:], '\n'); end >= 0 {
				i += end
				continue
			}
			return words, true
		}
		word, n, ok := unquote(line[i:])
		if !ok {
			return nil, false
		}
		words = append(words, word)
		i += n
	}
	return words, true
}

// unquote reads one word and says how many bytes it took.
func unquote(s string) (word string, n int, ok bool) {
	var b strings.Builder
	for ; n < len(s); n++ {
		switch c := s[n]; c {
		case ' ', '\t', '\n':
			return b.String(), n, true
		case '\'':
			end := strings.IndexByte(s[n+1:], '\'')
			if end < 0 {
				return "", 0, false
			}
			b.WriteString(s[n+1 : n+1+end])
			n += end + 1
		case '"':
			for n++; n < len(s) && s[n] != '"'; n++ {
				if s[n] == '\\' && n+1 < len(s) && strings.IndexByte("$`\"\\\n", s[n+1]) >= 0 {
					if n++; s[n] == '\n' {
						continue
					}
				}
				b.WriteByte(s[n])
			}
			if n >= len(s) {
				return "", 0, false
			}
		case '\\':
			if n++; n >= len(s) {
				return "", 0, false
			}
			if s[n] != '\n' {
				b.WriteByte(s[n])
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), n, true
}
