package commandline

import "strings"

// keywords begin what is more than a command.
var keywords = map[string]bool{
	"if": true, "then": true, "elif": true, "else": true, "fi": true, "for": true, "while": true, "until": true, "do": true, "done": true,
	"case": true, "esac": true, "select": true, "function": true, "time": true, "coproc": true, "!": true, "[[": true,
	"declare": true, "typeset": true, "export": true, "readonly": true, "local": true, "unset": true, "unsetenv": true,
}

// commands are the simple commands of a script in their order; false for a script
// whose words a shell would change: expansions, redirections, assignments, groups.
// piped says that one of them reads another's output.
func commands(script string) (list [][]string, piped, ok bool) {
	p := parser{rest: script}
	var cur []string
	want := false // an operator needs a command after it
	for {
		word, op, quoted, ok := p.next()
		switch {
		case !ok:
			return nil, false, false
		case op == "":
			if len(cur) == 0 && !quoted && (keywords[word] || assignment(word)) || len(cur) == 0 && quoted {
				return nil, false, false
			}
			cur, want = append(cur, word), false
			continue
		}
		switch {
		case len(cur) > 0:
			list, cur = append(list, cur), nil
		case op != "\n" && op != "end", want && op == "end": // nothing before it, or nothing after the last
			return nil, false, false
		}
		piped = piped || op == "|"
		if op == "end" {
			return list, piped, true
		}
		want = op == "|" || op == "&&" || op == "||" || want && op == "\n"
	}
}

func assignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	if !ok || name == "" {
		return false
	}
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// parser reads words and operators.
type parser struct{ rest string }

// next returns a word, or an operator: && || | ; newline, or "end". quoted says that
// the word began with a quote. It is not ok where the source is not what would run.
func (p *parser) next() (word, op string, quoted, ok bool) {
	p.rest = strings.TrimLeft(p.rest, " \t")
	if p.rest == "" {
		return "", "end", false, true
	}
	for _, op := range []string{"&&", "||", "|", ";", "\n"} {
		if after, found := strings.CutPrefix(p.rest, op); found {
			if op == ";" && strings.HasPrefix(after, ";") || op == "|" && strings.HasPrefix(after, "&") {
				return "", "", false, false
			}
			p.rest = after
			return "", op, false, true
		}
	}
	quoted = p.rest[0] == '"' || p.rest[0] == '\''
	var b strings.Builder
	for p.rest != "" {
		switch c := p.rest[0]; {
		case strings.IndexByte(" \t\n;|", c) >= 0:
			return b.String(), "", quoted, true
		case c == '&' || c == '=' && b.Len() == 0 && !quoted || strings.IndexByte("<>(){}*?[]\\~^#$`!\r", c) >= 0 && !(c == '!' && b.Len() > 0):
			return "", "", false, false
		case c == '\'' || c == '"':
			inside, after, closed := strings.Cut(p.rest[1:], string(c))
			if !closed || c == '"' && expands(inside) {
				return "", "", false, false
			}
			b.WriteString(inside)
			p.rest = after
		default:
			b.WriteByte(c)
			p.rest = p.rest[1:]
		}
	}
	return b.String(), "", quoted, true
}

// expands reports whether a shell would change a text in double quotes. One that is cut
// at an escaped quote ends with the backslash.
func expands(text string) bool {
	if strings.ContainsAny(text, "$`") || strings.HasSuffix(text, "\\") {
		return true
	}
	for i := 0; i+1 < len(text); i++ {
		if text[i] == '\\' && (text[i+1] == '\\' || text[i+1] == '\n') {
			return true
		}
	}
	return false
}
