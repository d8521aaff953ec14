package source

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"unicode"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
)

const (
	// maxSlug bounds the words of a branch's name, maxTitle a thread's.
	maxSlug  = 40
	maxTitle = 60
	suffix   = 4
)

// BranchPrefix is before the name of every branch that thole makes.
const BranchPrefix = "thole/"

// Slug is a message as the name of a branch, without BranchPrefix: its first words and
// four characters that follow from the thread's id, so that a repeated request gives
// the same name and two threads of one message do not. Every message gives a name that
// git accepts, in lower case.
func Slug(message string, id thole.ThreadID) string {
	var slug string
	for _, word := range strings.FieldsFunc(strings.ToValidUTF8(strings.ToLower(message), " "), apart) {
		word = strings.TrimLeftFunc(word, unicode.IsMark)
		if word == "" {
			continue
		}
		if slug == "" {
			slug = bounded(word, maxSlug)
		} else if slug += "-" + word; len(slug) > maxSlug {
			slug = slug[:len(slug)-len(word)-1]
			break
		}
		if len(slug) == maxSlug {
			break
		}
	}
	if slug == "" {
		slug = "work"
	}
	sum := sha256.Sum256([]byte(id))
	return slug + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:suffix]
}

// apart reports whether a character stands between words.
func apart(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) }

// bounded is the beginning of a word, in whole characters.
func bounded(word string, limit int) string {
	for len(word) > limit {
		_, n := utf8.DecodeLastRuneInString(word)
		word = word[:len(word)-n]
	}
	return word
}

// Title is a message as the name of a thread: its first line, on one line and bounded at
// a word; "" for a message without text.
func Title(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	var b strings.Builder
	n := 0
	for word := range strings.FieldsSeq(strings.Map(shown, line)) {
		size := len([]rune(word))
		switch {
		case n == 0 && size > maxTitle:
			return string([]rune(word)[:maxTitle]) + "…"
		case n > 0 && n+1+size > maxTitle:
			return b.String() + "…"
		case n > 0:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += size
	}
	return b.String()
}

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
