package repository

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Configuration is read as git reads it, byte for byte: what it would take for another
// path than git does would stay writable.

// entry is one line of a configuration.
type entry struct {
	name  string // with its subsection
	value string
	set   bool // has a value, even if that is empty
	blank bool // has white space between its words that versions of git read differently
}

// key is the name without the subsection.
func (e entry) key() string {
	section, rest, ok := strings.Cut(e.name, ".")
	if !ok {
		return e.name
	}
	return section + "." + rest[strings.LastIndexByte(rest, '.')+1:]
}

// entries reads a configuration file, which may be elsewhere by a link, as people keep those
// of their home. One that is not there has none.
func entries(path string) ([]entry, error) {
	real, err := filepath.EvalSymlinks(path)
	var text []byte
	if err == nil {
		text, err = beneath.ReadFile(filepath.Dir(real), filepath.Base(real), maxConfig)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parse(text)
}

// errSyntax is that of a configuration that git refuses.
var errSyntax = errors.New("git cannot read it")

// parse returns the entries of a configuration, and an error where git finds one.
func parse(text []byte) (all []entry, err error) {
	p := &parser{text: bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))}
	section := ""
	for {
		c, end := p.next()
		switch {
		case end:
			return all, nil
		case c == '#' || c == ';':
			p.line()
			continue
		case isSpace(c):
			continue
		case c == '[':
			if section, err = p.section(); err != nil {
				return all, fmt.Errorf("line %d: %w", p.at(), err)
			}
			section += "."
			continue
		case !isLetter(c):
			return all, fmt.Errorf("line %d: %w", p.at(), errSyntax)
		}
		p.back()
		e, err := p.entry(section)
		if err != nil {
			return all, fmt.Errorf("line %d: %w", p.at(), err)
		}
		all = append(all, e)
	}
}

// parser goes through a configuration. A line may end with a carriage return too.
type parser struct {
	text []byte
	pos  int
	last int // before the character that was read last
}

// next is the next character, and at the end a newline.
func (p *parser) next() (c byte, end bool) {
	p.last = p.pos
	if p.pos >= len(p.text) {
		return '\n', true
	}
	c = p.text[p.pos]
	p.pos++
	if c == '\r' && p.pos < len(p.text) && p.text[p.pos] == '\n' {
		p.pos++
		c = '\n'
	}
	return c, false
}

func (p *parser) back() { p.pos = p.last }

func (p *parser) at() int { return 1 + bytes.Count(p.text[:p.last], []byte("\n")) }

// line passes over the rest of one.
func (p *parser) line() {
	for c, _ := p.next(); c != '\n'; c, _ = p.next() {
	}
}

// section reads on after a bracket.
func (p *parser) section() (string, error) {
	var name []byte
	c, _ := p.next()
	for ; !isSpace(c) && c != ']'; c, _ = p.next() {
		if !isKey(c) && c != '.' {
			return "", errSyntax
		}
		name = append(name, lower(c))
	}
	if c == ']' {
		return string(name), nil
	}
	for ; isSpace(c); c, _ = p.next() {
		if c == '\n' {
			return "", errSyntax
		}
	}
	if c != '"' {
		return "", errSyntax
	}
	name = append(name, '.')
	for {
		c, _ := p.next()
		if c == '"' {
			break
		}
		if c == '\\' {
			c, _ = p.next()
		}
		if c == '\n' {
			return "", errSyntax
		}
		name = append(name, c)
	}
	if c, _ := p.next(); c != ']' {
		return "", errSyntax
	}
	return string(name), nil
}

// entry reads a key, and a value where there is one.
func (p *parser) entry(section string) (e entry, err error) {
	name := []byte(section)
	c, _ := p.next()
	for ; isKey(c); c, _ = p.next() {
		name = append(name, lower(c))
	}
	for c == ' ' || c == '\t' {
		c, _ = p.next()
	}
	e.name = upToNUL(name)
	if c == '\n' {
		return e, nil
	}
	if c != '=' {
		return e, errSyntax
	}
	e.set = true
	e.value, e.blank, err = p.value()
	return e, err
}

func (p *parser) value() (_ string, blank bool, err error) {
	var value []byte
	quoted, spaces, odd := false, 0, false
	for {
		c, _ := p.next()
		switch {
		case c == '\n' && quoted:
			return "", false, errSyntax
		case c == '\n':
			return upToNUL(value), blank, nil
		case isSpace(c) && !quoted:
			if len(value) > 0 {
				spaces, odd = spaces+1, odd || c != ' '
			}
			continue
		case (c == '#' || c == ';') && !quoted:
			p.line()
			return upToNUL(value), blank, nil
		}
		blank = blank || spaces > 0 && odd
		value = append(value, bytes.Repeat([]byte(" "), spaces)...)
		spaces, odd = 0, false
		switch c {
		case '"':
			quoted = !quoted
		case '\\':
			c, _ = p.next()
			escaped, ok := map[byte]string{'\n': "", 't': "\t", 'b': "\b", 'n': "\n", '\\': "\\", '"': "\""}[c]
			if !ok {
				return "", false, errSyntax
			}
			value = append(value, escaped...)
		default:
			value = append(value, c)
		}
	}
}

func isSpace(c byte) bool  { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isLetter(c byte) bool { return lower(c) >= 'a' && lower(c) <= 'z' }
func isKey(c byte) bool    { return isLetter(c) || c >= '0' && c <= '9' || c == '-' }

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// upToNUL is what a program in C sees of a string.
func upToNUL(text []byte) string {
	text, _, _ = bytes.Cut(text, []byte{0})
	return string(text)
}
